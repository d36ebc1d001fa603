"""Every operation: what it means for somebody who may not see all of a table.

Must not break: every operation is listed in exactly one of these, and one that is not is refused wherever a
table is restricted.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, Operation


class Door(Enum):
    """What an operation could let somebody through to."""

    HARMLESS = "harmless"
    """Neither gives data nor changes what is restricted; `load-table` answers with what is left."""
    FILES = "files"
    """Gives the files to read: only to a trusted engine that acts for the principal."""
    CLOSED = "closed"
    """Gives or changes data of the table, or takes it to where it is not restricted."""
    UNCHECKED = "unchecked"
    """Takes files or tables whose content nobody looks at: not for those who are restricted anywhere."""


_FILES: Final = (ops.LOAD_TABLE_TO_READ,)
_CLOSED: Final = (
    ops.LOAD_TABLE_TO_WRITE,
    ops.COMMIT_TABLE,
    ops.APPEND_FILES,
    ops.ADD_COLUMNS,
    ops.SET_PARTITIONING,
    ops.SET_SORT_ORDER,
    ops.COMMIT_TRANSACTION,
    ops.DROP_TABLE,
    ops.PURGE_TABLE,
    ops.UNREGISTER_TABLE,
    ops.RENAME_TABLE,
    ops.EXPORT_TABLE,
    # Reports tell how many rows and files there are, and what others ask for.
    ops.LIST_REPORTS,
    ops.REPORT_COMMIT,
    # So do statistics, and what is in partitions besides.
    ops.TABLE_STATISTICS,
    ops.TABLE_STATISTICS_WITH_VALUES,
    # Rewrites data, or deletes files.
    ops.ORDER_MAINTENANCE,
    ops.LOAD_GENERIC_TABLE_TO_READ,
    ops.LOAD_GENERIC_TABLE_TO_WRITE,
    ops.DROP_GENERIC_TABLE,
)
_UNCHECKED: Final = (
    ops.REGISTER_TABLE,
    ops.REGISTER_TABLE_DELEGATED,
    ops.REGISTER_TABLE_DELEGATED_READ,
    ops.OVERWRITE_TABLE,
    ops.OVERWRITE_TABLE_DELEGATED,
    ops.OVERWRITE_TABLE_DELEGATED_READ,
    ops.CREATE_GENERIC_TABLE,
    ops.CREATE_GENERIC_TABLE_DELEGATED,
    ops.RESTORE_DROPPED,
    # What is to be purged is given to whoever purges it, with its files.
    ops.LOAD_TOMBSTONE,
    ops.BEGIN_PURGING,
    ops.IMPORT_TABLES,
    ops.SEND_NOTIFICATION,
    # These tell how many files and bytes every table has.
    ops.PLAN_MAINTENANCE,
    ops.LIST_MAINTENANCE,
    # And these besides what their files are called.
    ops.READ_CATALOG_TASKS,
    ops.MANAGE_CATALOG_TASKS,
)
_HARMLESS: Final = (
    # What a table tells without its data; creating one gives access to what its creator writes.
    ops.LOAD_TABLE,
    ops.TABLE_EXISTS,
    # Answers with what is left, as `load-table` does (`planning/viewer.py`).
    ops.PLAN_SCAN,
    ops.REPORT_SCAN,
    ops.LIST_TABLES,
    ops.CREATE_TABLE,
    ops.CREATE_TABLE_DELEGATED,
    ops.CREATE_TABLE_BY_COMMIT,
    ops.CREATE_IN_TRANSACTION,
    ops.LIST_GENERIC_TABLES,
    ops.LOAD_GENERIC_TABLE,
    ops.MANAGE_SEMANTIC_MODELS,
    ops.LIST_TOMBSTONES,
    # Word that is checked before anything comes of it.
    ops.END_PURGING,
)
_HARMLESS_KINDS: Final = frozenset({"realm", "principal", "principal-role", "catalog-role", "view", "policy"})
"""Things that hold no data of tables; a view is run by whoever asks, with their own rights."""
_HARMLESS_VERBS: Final = (
    "grant-on-",
    "revoke-on-",
    "list-policies",
    "list-views",
    "create-view",
    "register-view",
    "create-policy",
    "create-restriction",
    "list-namespaces",
    "create-namespace",
    "load-namespace",
    "namespace-exists",
    "drop-namespace",
    "update-namespace",
    "load-catalog",
    "update-catalog",
    "check-storage",
    "reconcile-catalog",
    "migrate-catalog",
    "drop-catalog",
    "list-catalog-roles",
    "create-catalog-role",
    "list-dropped",
    "read-changes",
    "sweep-files",
    "check-storage",
)
"""How names of operations on namespaces, catalogs and tables begin that are about no data."""


def _sort(operation: Operation) -> Door | None:
    for door, listed in _LISTED.items():
        if operation in listed:
            return door
    if operation.kinds[0] in _HARMLESS_KINDS or operation.name.startswith(_HARMLESS_VERBS):
        return Door.HARMLESS
    return None


_LISTED: Final = {
    Door.FILES: _FILES,
    Door.CLOSED: _CLOSED,
    Door.UNCHECKED: _UNCHECKED,
    Door.HARMLESS: _HARMLESS,
}
DOORS: Final[Mapping[str, Door]] = MappingProxyType(
    {name: door for name, operation in OPERATIONS.items() if (door := _sort(operation)) is not None}
)
"""By name: a commit of a table is a different operation for every set of updates."""


def door_of(operation: Operation) -> Door:
    """What the operation is; one that nobody thought of is closed."""
    return DOORS.get(operation.name, Door.CLOSED)
