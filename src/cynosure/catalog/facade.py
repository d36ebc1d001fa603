"""What an external catalog refuses: another catalog owns its tables.

Apache Polaris calls an external catalog without a connection a static facade. Tables get there by
notifications (`operations/notify.py`) or by registering their metadata files; they are read here, granted,
and dropped from the list, but changed only by their owner. So everything that would write a table's or a
view's metadata is refused, and so is a purge: the files are not ours.

One with a connection is a federated catalog. The same is refused there: a change goes to the remote, through
`cynosure.federation`, and what comes of it is written here as something that was seen.

Must not break: this is asked by `OpenCatalog` for every operation, so no operation can forget it.
"""

from typing import Final

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.errors import DelegationOff, OwnedElsewhere

VENDING: Final = ("polaris.config.enable.credential.vending", "enable.credential.vending")
"""Properties that say whether clients of an external catalog are given access to files. Without one: yes."""

_CHANGES: Final = frozenset(
    each.name
    for each in (
        ops.CREATE_TABLE,
        ops.CREATE_TABLE_DELEGATED,
        ops.COMMIT_TABLE,
        ops.APPEND_FILES,
        ops.ADD_COLUMNS,
        ops.SET_PARTITIONING,
        ops.SET_SORT_ORDER,
        ops.CREATE_TABLE_BY_COMMIT,
        ops.COMMIT_TRANSACTION,
        ops.CREATE_IN_TRANSACTION,
        ops.RENAME_TABLE,
        ops.PURGE_TABLE,
        ops.EXPORT_TABLE,
        ops.ORDER_MAINTENANCE,
        ops.CREATE_VIEW,
        ops.REPLACE_VIEW,
        ops.RENAME_VIEW,
    )
)
"""By name: a commit of a table is a different operation for every set of updates."""
_ONLY_PASSED_ON: Final = frozenset(
    each.name
    for each in (
        ops.REGISTER_TABLE,
        ops.REGISTER_TABLE_DELEGATED,
        ops.REGISTER_TABLE_DELEGATED_READ,
        ops.OVERWRITE_TABLE,
        ops.OVERWRITE_TABLE_DELEGATED,
        ops.OVERWRITE_TABLE_DELEGATED_READ,
        ops.UNREGISTER_TABLE,
        ops.REGISTER_VIEW,
        ops.CREATE_NAMESPACE,
        ops.UPDATE_NAMESPACE,
        ops.CREATE_GENERIC_TABLE,
        ops.CREATE_GENERIC_TABLE_DELEGATED,
        ops.RESTORE_DROPPED,
        ops.IMPORT_TABLES,
    )
)
"""What a catalog without a connection takes itself, and one with a remote does only there. Dropping is not
among them: a catalog that is itself dropped forgets what it had seen, and the remote keeps it."""
_NEVER_PASSED_ON: Final = frozenset(
    each.name
    for each in (
        ops.APPEND_FILES,
        ops.ADD_COLUMNS,
        ops.SET_PARTITIONING,
        ops.SET_SORT_ORDER,
        ops.EXPORT_TABLE,
        ops.ORDER_MAINTENANCE,
        ops.CREATE_GENERIC_TABLE,
        ops.CREATE_GENERIC_TABLE_DELEGATED,
        ops.RESTORE_DROPPED,
        ops.IMPORT_TABLES,
        ops.SEND_NOTIFICATION,
    )
)
"""What no remote can be asked for."""
_GIVES_ACCESS: Final = ("-to-read", "-to-write", "-with-credentials", "-with-read-credentials")
"""How the names of operations end that give a client access to files."""


def is_facade(entity: CatalogEntity) -> bool:
    """Whether another catalog owns the tables of this one."""
    return entity.kind == "EXTERNAL"


def refuse_on_facade(entity: CatalogEntity, operation: Operation, *, is_passed_on: bool = False) -> None:
    """Refuse what cannot be done to the tables of another catalog, to whoever was allowed to do it.

    `is_passed_on`: the other catalog is asked to do it first.
    """
    if operation.name in (_NEVER_PASSED_ON if is_passed_on else _CHANGES):
        raise OwnedElsewhere(operation.name)
    if entity.connection is not None and not is_passed_on and operation.name in _ONLY_PASSED_ON:
        raise OwnedElsewhere(operation.name)
    if operation.name.endswith(_GIVES_ACCESS) and not _is_vending(entity):
        raise DelegationOff(entity.name, property=VENDING[0])


def _is_vending(entity: CatalogEntity) -> bool:
    said = next((entity.properties[name] for name in VENDING if name in entity.properties), "true")
    return said.strip().lower() == "true"
