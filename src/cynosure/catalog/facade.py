"""What an external catalog refuses: another catalog owns its tables, and tells this one about them.

Apache Polaris calls an external catalog without a connection a static facade. Tables get there by
notifications (`operations/notify.py`) or by registering their metadata files; they are read here, granted,
and dropped from the list, but changed only by their owner. So everything that would write a table's or a
view's metadata is refused, and so is a purge: the files are not ours.

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
_GIVES_ACCESS: Final = ("-to-read", "-to-write", "-with-credentials", "-with-read-credentials")
"""How the names of operations end that give a client access to files."""


def is_facade(entity: CatalogEntity) -> bool:
    """Whether another catalog owns the tables of this one."""
    return entity.kind == "EXTERNAL"


def refuse_on_facade(entity: CatalogEntity, operation: Operation) -> None:
    """Refuse what cannot be done to the tables of another catalog, to whoever was allowed to do it."""
    if operation.name in _CHANGES:
        raise OwnedElsewhere(operation.name)
    if operation.name.endswith(_GIVES_ACCESS) and not _is_vending(entity):
        raise DelegationOff(entity.name, property=VENDING[0])


def _is_vending(entity: CatalogEntity) -> bool:
    said = next((entity.properties[name] for name in VENDING if name in entity.properties), "true")
    return said.strip().lower() == "true"
