"""What every operation needs: the one table that enforcement and explanation read.

An operation has up to two targets, and a set of privileges for each. All of them must be met. The names are
those of the log and of `cynosure explain`.

Must not break: an operation that is not listed here cannot be authorized, so none can be forgotten.
"""

from collections.abc import Iterable
from functools import cached_property
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from cynosure.auth.rbac.privileges import SATISFIED_BY, PrivilegeSet
from cynosure.auth.rbac.privileges import Privilege as P


class Operation(Struct, frozen=True, dict=True):
    """Something a caller may want to do."""

    name: str
    needs: tuple[tuple[P, ...], ...]
    """Per target, in the order in which the operation names them. An operation with one kind of target may be
    asked for several of them at once: then each needs the same."""
    kinds: tuple[str, ...]
    """Per target, what it is: `realm`, `catalog`, `namespace`, `table`, `view`, `policy`, `principal`,
    `principal-role`, `catalog-role`."""

    @cached_property
    def met_by(self) -> tuple[tuple[tuple[P, PrivilegeSet], ...], ...]:
        """Per target, each need with the set of privileges of which one must be held."""
        return tuple(tuple((need, SATISFIED_BY[need]) for need in needs) for needs in self.needs)


_all: dict[str, Operation] = {}


def _operation(name: str, kind: str, *needs: P, second: tuple[str, tuple[P, ...]] | None = None) -> Operation:
    more = () if second is None else (second,)
    made = Operation(name, (needs, *(each[1] for each in more)), (kind, *(each[0] for each in more)))
    if name in _all:
        raise ValueError(f"Two operations are called {name}")
    _all[name] = made
    return made


# --- namespaces: created in their parent, which is the catalog for the first level --------------------------
LIST_NAMESPACES = _operation("list-namespaces", "namespace", P.NAMESPACE_LIST)
CREATE_NAMESPACE = _operation("create-namespace", "namespace", P.NAMESPACE_CREATE)
LOAD_NAMESPACE = _operation("load-namespace", "namespace", P.NAMESPACE_READ_PROPERTIES)
NAMESPACE_EXISTS = _operation("namespace-exists", "namespace", P.NAMESPACE_LIST)
DROP_NAMESPACE = _operation("drop-namespace", "namespace", P.NAMESPACE_DROP)
UPDATE_NAMESPACE = _operation("update-namespace-properties", "namespace", P.NAMESPACE_WRITE_PROPERTIES)

# --- tables -------------------------------------------------------------------------------------------------
LIST_TABLES = _operation("list-tables", "namespace", P.TABLE_LIST)
CREATE_TABLE = _operation("create-table", "namespace", P.TABLE_CREATE)
CREATE_TABLE_DELEGATED = _operation(
    "create-table-with-credentials", "namespace", P.TABLE_CREATE, P.TABLE_WRITE_DATA
)
REGISTER_TABLE = _operation("register-table", "namespace", P.TABLE_CREATE)
REGISTER_TABLE_DELEGATED = _operation(
    "register-table-with-credentials", "namespace", P.TABLE_CREATE, P.TABLE_WRITE_DATA
)
REGISTER_TABLE_DELEGATED_READ = _operation(
    "register-table-with-read-credentials", "namespace", P.TABLE_CREATE, P.TABLE_READ_DATA
)
OVERWRITE_TABLE = _operation("overwrite-table", "table", P.TABLE_FULL_METADATA)
OVERWRITE_TABLE_DELEGATED = _operation(
    "overwrite-table-with-credentials", "table", P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA
)
OVERWRITE_TABLE_DELEGATED_READ = _operation(
    "overwrite-table-with-read-credentials", "table", P.TABLE_FULL_METADATA, P.TABLE_READ_DATA
)
LOAD_TABLE = _operation("load-table", "table", P.TABLE_READ_PROPERTIES)
LOAD_TABLE_TO_WRITE = _operation("load-table-to-write", "table", P.TABLE_WRITE_DATA)
LOAD_TABLE_TO_READ = _operation("load-table-to-read", "table", P.TABLE_READ_DATA)
PLAN_SCAN = _operation("plan-scan", "table", P.TABLE_READ_DATA)
TABLE_EXISTS = _operation("table-exists", "table", P.TABLE_LIST)
COMMIT_TABLE = _operation("commit-table", "table", P.TABLE_WRITE_PROPERTIES)
APPEND_FILES = _operation("append-files", "table", P.TABLE_ADD_SNAPSHOT, P.TABLE_SET_SNAPSHOT_REF)
ADD_COLUMNS = _operation("add-columns", "table", P.TABLE_ADD_SCHEMA, P.TABLE_SET_CURRENT_SCHEMA)
SET_PARTITIONING = _operation(
    "set-partitioning", "table", P.TABLE_ADD_PARTITION_SPEC, P.TABLE_WRITE_PROPERTIES
)
SET_SORT_ORDER = _operation("set-sort-order", "table", P.TABLE_ADD_SORT_ORDER, P.TABLE_SET_DEFAULT_SORT_ORDER)
"""These four need what the standard updates that they make need (`UPDATE_NEEDS`)."""
CREATE_TABLE_BY_COMMIT = _operation("commit-staged-table", "namespace", P.TABLE_CREATE)
COMMIT_TRANSACTION = _operation("commit-transaction", "table", P.TABLE_WRITE_PROPERTIES, P.TABLE_CREATE)
CREATE_IN_TRANSACTION = _operation(
    "create-table-in-transaction", "namespace", P.TABLE_WRITE_PROPERTIES, P.TABLE_CREATE
)
DROP_TABLE = _operation("drop-table", "table", P.TABLE_DROP)
PURGE_TABLE = _operation("purge-table", "table", P.TABLE_DROP, P.TABLE_WRITE_DATA)
UNREGISTER_TABLE = _operation("unregister-table", "table", P.TABLE_DROP, P.TABLE_READ_PROPERTIES)
RENAME_TABLE = _operation(
    "rename-table", "table", P.TABLE_DROP, second=("namespace", (P.TABLE_LIST, P.TABLE_CREATE))
)
REPORT_SCAN = _operation("report-scan", "table", P.TABLE_READ_DATA)
REPORT_COMMIT = _operation("report-commit", "table", P.TABLE_WRITE_DATA)
LIST_REPORTS = _operation("list-reports", "table", P.TABLE_READ_PROPERTIES)
TABLE_STATISTICS = _operation("table-statistics", "table", P.TABLE_READ_PROPERTIES)
TABLE_STATISTICS_WITH_VALUES = _operation(
    "table-statistics-with-values", "table", P.TABLE_READ_PROPERTIES, P.TABLE_READ_DATA
)
EXPORT_TABLE = _operation("export-table", "table", P.TABLE_WRITE_PROPERTIES)

# --- views --------------------------------------------------------------------------------------------------
LIST_VIEWS = _operation("list-views", "namespace", P.VIEW_LIST)
CREATE_VIEW = _operation("create-view", "namespace", P.VIEW_CREATE)
REGISTER_VIEW = _operation("register-view", "namespace", P.VIEW_CREATE)
LOAD_VIEW = _operation("load-view", "view", P.VIEW_READ_PROPERTIES)
VIEW_EXISTS = _operation("view-exists", "view", P.VIEW_LIST)
REPLACE_VIEW = _operation("replace-view", "view", P.VIEW_WRITE_PROPERTIES)
DROP_VIEW = _operation("drop-view", "view", P.VIEW_DROP)
RENAME_VIEW = _operation(
    "rename-view", "view", P.VIEW_DROP, second=("namespace", (P.VIEW_LIST, P.VIEW_CREATE))
)

# --- generic tables, notifications; semantic models: named here for the day they are served -----------------
LIST_GENERIC_TABLES = _operation("list-generic-tables", "namespace", P.TABLE_LIST)
CREATE_GENERIC_TABLE = _operation("create-generic-table", "namespace", P.TABLE_CREATE)
CREATE_GENERIC_TABLE_DELEGATED = _operation(
    "create-generic-table-with-credentials", "namespace", P.TABLE_CREATE, P.TABLE_WRITE_DATA
)
LOAD_GENERIC_TABLE = _operation("load-generic-table", "table", P.TABLE_READ_PROPERTIES)
LOAD_GENERIC_TABLE_TO_WRITE = _operation("load-generic-table-to-write", "table", P.TABLE_WRITE_DATA)
LOAD_GENERIC_TABLE_TO_READ = _operation("load-generic-table-to-read", "table", P.TABLE_READ_DATA)
DROP_GENERIC_TABLE = _operation("drop-generic-table", "table", P.TABLE_DROP)
MANAGE_SEMANTIC_MODELS = _operation("manage-semantic-models", "namespace", P.CATALOG_MANAGE_CONTENT)
SEND_NOTIFICATION = _operation(
    "send-notification",
    "catalog",
    P.TABLE_CREATE,
    P.TABLE_WRITE_PROPERTIES,
    P.TABLE_DROP,
    P.NAMESPACE_CREATE,
    P.NAMESPACE_DROP,
)

# --- what is dropped, and the change feed: of the whole catalog ---------------------------------------------
LIST_DROPPED = _operation("list-dropped", "catalog", P.CATALOG_MANAGE_METADATA)
RESTORE_DROPPED = _operation("restore-dropped", "catalog", P.CATALOG_MANAGE_METADATA)
LIST_TOMBSTONES = _operation("list-tombstones", "catalog", P.TABLE_DROP, P.TABLE_WRITE_DATA)
LOAD_TOMBSTONE = _operation("load-tombstone", "catalog", P.TABLE_DROP, P.TABLE_WRITE_DATA)
BEGIN_PURGING = _operation("begin-purging", "catalog", P.TABLE_DROP, P.TABLE_WRITE_DATA)
END_PURGING = _operation("end-purging", "catalog", P.TABLE_DROP, P.TABLE_WRITE_DATA)
READ_CHANGES = _operation("read-changes", "catalog", P.CATALOG_MANAGE_METADATA)
SWEEP_FILES = _operation("sweep-files", "catalog", P.CATALOG_MANAGE_CONTENT)
IMPORT_TABLES = _operation("import-tables", "catalog", P.CATALOG_MANAGE_METADATA)

# --- maintenance: what it tells of tables, it tells of all of them ------------------------------------------
PLAN_MAINTENANCE = _operation("plan-maintenance", "catalog", P.TABLE_READ_PROPERTIES)
LIST_MAINTENANCE = _operation("list-maintenance", "catalog", P.TABLE_READ_PROPERTIES)
ORDER_MAINTENANCE = _operation("order-maintenance", "table", P.TABLE_WRITE_DATA)

# --- long work: of the whole realm, or of one catalog -------------------------------------------------------
READ_TASKS = _operation("read-tasks", "realm", P.SERVICE_MANAGE_ACCESS)
MANAGE_TASKS = _operation("manage-tasks", "realm", P.SERVICE_MANAGE_ACCESS)
READ_CATALOG_TASKS = _operation("read-catalog-tasks", "catalog", P.CATALOG_MANAGE_CONTENT)
MANAGE_CATALOG_TASKS = _operation("manage-catalog-tasks", "catalog", P.CATALOG_MANAGE_CONTENT)

# --- policies -----------------------------------------------------------------------------------------------
LIST_POLICIES = _operation("list-policies", "namespace", P.POLICY_LIST)
CREATE_POLICY = _operation("create-policy", "namespace", P.POLICY_CREATE)
LOAD_POLICY = _operation("load-policy", "policy", P.POLICY_READ)
POLICY_EXISTS = _operation("policy-exists", "policy", P.POLICY_LIST)
UPDATE_POLICY = _operation("update-policy", "policy", P.POLICY_WRITE)
DROP_POLICY = _operation("drop-policy", "policy", P.POLICY_DROP)
for _kind in ("catalog", "namespace", "table"):
    for _verb in ("attach", "detach"):
        _operation(
            f"{_verb}-policy-to-{_kind}" if _verb == "attach" else f"{_verb}-policy-from-{_kind}",
            "policy",
            P[f"POLICY_{_verb.upper()}"],
            second=(_kind, (P[f"{_kind.upper()}_{_verb.upper()}_POLICY"],)),
        )
    _operation(f"list-policies-of-{_kind}", _kind, P[f"{_kind.upper()}_READ_PROPERTIES"])

# --- policies that restrict what is read: those who manage content must not lift their own restrictions -----
CREATE_RESTRICTION = _operation("create-restriction", "namespace", P.CATALOG_MANAGE_ACCESS)
UPDATE_RESTRICTION = _operation("update-restriction", "policy", P.CATALOG_MANAGE_ACCESS)
DROP_RESTRICTION = _operation("drop-restriction", "policy", P.CATALOG_MANAGE_ACCESS)
for _kind in ("catalog", "namespace", "table"):
    for _name in (f"attach-restriction-to-{_kind}", f"detach-restriction-from-{_kind}"):
        _operation(_name, "policy", P.CATALOG_MANAGE_ACCESS, second=(_kind, (P.CATALOG_MANAGE_ACCESS,)))

# --- catalogs -----------------------------------------------------------------------------------------------
LIST_CATALOGS = _operation("list-catalogs", "realm", P.CATALOG_LIST)
CREATE_CATALOG = _operation("create-catalog", "realm", P.CATALOG_CREATE)
LOAD_CATALOG = _operation("load-catalog", "catalog", P.CATALOG_READ_PROPERTIES)
UPDATE_CATALOG = _operation("update-catalog", "catalog", P.CATALOG_WRITE_PROPERTIES)
EXTEND_STORAGE = _operation("extend-storage", "realm", P.CATALOG_CREATE)
"""Besides `update-catalog`, where a catalog is to reach more of its storage than before, or another one."""
CHECK_STORAGE = _operation("check-storage", "catalog", P.CATALOG_WRITE_PROPERTIES)
RECONCILE_CATALOG = _operation(
    "reconcile-catalog", "catalog", P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS
)
"""It tells who has grants on what is gone, besides giving up what is."""
MIGRATE_CATALOG = _operation("migrate-catalog", "catalog", P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS)
"""A federated catalog becomes our own, and what is gone loses its grants. Its end takes a connection away,
which needs `extend-storage` too."""
DROP_CATALOG = _operation("drop-catalog", "catalog", P.CATALOG_DROP)

# --- principals and principal roles -------------------------------------------------------------------------
LIST_PRINCIPALS = _operation("list-principals", "realm", P.PRINCIPAL_LIST)
CREATE_PRINCIPAL = _operation("create-principal", "realm", P.PRINCIPAL_CREATE)
LOAD_PRINCIPAL = _operation("load-principal", "principal", P.PRINCIPAL_READ_PROPERTIES)
UPDATE_PRINCIPAL = _operation("update-principal", "principal", P.PRINCIPAL_WRITE_PROPERTIES)
DELETE_PRINCIPAL = _operation("delete-principal", "principal", P.PRINCIPAL_DROP)
ROTATE_CREDENTIALS = _operation("rotate-credentials", "principal", P.PRINCIPAL_ROTATE_CREDENTIALS)
"""A principal may always rotate its own (`rules.py`)."""
RESET_CREDENTIALS = _operation("reset-credentials", "principal", P.PRINCIPAL_RESET_CREDENTIALS)
"""Only `root` may (`rules.py`)."""
TRUST_SERVICE = _operation("trust-service", "principal", P.SERVICE_MANAGE_ACCESS)
LIST_ROLES_OF_PRINCIPAL = _operation("list-principal-roles-assigned", "principal", P.PRINCIPAL_LIST_GRANTS)
LIST_PRINCIPAL_ROLES = _operation("list-principal-roles", "realm", P.PRINCIPAL_ROLE_LIST)
CREATE_PRINCIPAL_ROLE = _operation("create-principal-role", "realm", P.PRINCIPAL_ROLE_CREATE)
LOAD_PRINCIPAL_ROLE = _operation("load-principal-role", "principal-role", P.PRINCIPAL_ROLE_READ_PROPERTIES)
UPDATE_PRINCIPAL_ROLE = _operation(
    "update-principal-role", "principal-role", P.PRINCIPAL_ROLE_WRITE_PROPERTIES
)
DELETE_PRINCIPAL_ROLE = _operation("delete-principal-role", "principal-role", P.PRINCIPAL_ROLE_DROP)
LIST_ASSIGNEES = _operation(
    "list-assignees-of-principal-role", "principal-role", P.PRINCIPAL_ROLE_LIST_GRANTS
)
ASSIGN_PRINCIPAL_ROLE = _operation(
    "assign-principal-role", "principal-role", P.PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE
)
REVOKE_PRINCIPAL_ROLE = _operation(
    "revoke-principal-role",
    "principal-role",
    P.PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE,
    second=("principal", (P.PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE,)),
)

# --- catalog roles and grants -------------------------------------------------------------------------------
LIST_CATALOG_ROLES = _operation("list-catalog-roles", "catalog", P.CATALOG_ROLE_LIST)
CREATE_CATALOG_ROLE = _operation("create-catalog-role", "catalog", P.CATALOG_ROLE_CREATE)
LOAD_CATALOG_ROLE = _operation("load-catalog-role", "catalog-role", P.CATALOG_ROLE_READ_PROPERTIES)
UPDATE_CATALOG_ROLE = _operation("update-catalog-role", "catalog-role", P.CATALOG_ROLE_WRITE_PROPERTIES)
DELETE_CATALOG_ROLE = _operation("delete-catalog-role", "catalog-role", P.CATALOG_ROLE_DROP)
ASSIGN_CATALOG_ROLE = _operation(
    "assign-catalog-role", "catalog-role", P.CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE
)
REVOKE_CATALOG_ROLE = _operation(
    "revoke-catalog-role", "catalog-role", P.CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE
)
LIST_CATALOG_ROLES_OF_PRINCIPAL_ROLE = _operation(
    "list-catalog-roles-of-principal-role", "catalog", P.CATALOG_ROLE_LIST
)
LIST_ASSIGNEES_OF_CATALOG_ROLE = _operation(
    "list-assignees-of-catalog-role", "catalog-role", P.CATALOG_ROLE_LIST_GRANTS
)
LIST_GRANTS = _operation("list-grants", "catalog-role", P.CATALOG_ROLE_LIST_GRANTS)
for _kind in ("catalog", "namespace", "table", "view", "policy"):
    _manage = P[f"{_kind.upper()}_MANAGE_GRANTS_ON_SECURABLE"]
    _operation(f"grant-on-{_kind}", _kind, _manage)
    _operation(
        f"revoke-on-{_kind}",
        _kind,
        _manage,
        second=("catalog-role", (P.CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE,)),
    )

# --- the realm itself ---------------------------------------------------------------------------------------
READ_EVENTS = _operation("read-events", "realm", P.SERVICE_MANAGE_ACCESS)
EXPLAIN_ACCESS = _operation("explain-access", "principal", P.SERVICE_MANAGE_ACCESS)
"""Everyone may have their own access explained (`rules.py`)."""

OPERATIONS: Final = MappingProxyType(_all)
"""All of them, by name."""

UPDATE_NEEDS: Final = MappingProxyType(
    {
        "assign-uuid": P.TABLE_ASSIGN_UUID,
        "upgrade-format-version": P.TABLE_UPGRADE_FORMAT_VERSION,
        "add-schema": P.TABLE_ADD_SCHEMA,
        "set-current-schema": P.TABLE_SET_CURRENT_SCHEMA,
        "add-spec": P.TABLE_ADD_PARTITION_SPEC,
        "add-sort-order": P.TABLE_ADD_SORT_ORDER,
        "set-default-sort-order": P.TABLE_SET_DEFAULT_SORT_ORDER,
        "add-snapshot": P.TABLE_ADD_SNAPSHOT,
        "set-snapshot-ref": P.TABLE_SET_SNAPSHOT_REF,
        "remove-snapshots": P.TABLE_REMOVE_SNAPSHOTS,
        "remove-snapshot-ref": P.TABLE_REMOVE_SNAPSHOT_REF,
        "set-location": P.TABLE_SET_LOCATION,
        "set-properties": P.TABLE_SET_PROPERTIES,
        "remove-properties": P.TABLE_REMOVE_PROPERTIES,
        "set-statistics": P.TABLE_SET_STATISTICS,
        "remove-statistics": P.TABLE_REMOVE_STATISTICS,
        "remove-partition-specs": P.TABLE_REMOVE_PARTITION_SPECS,
    }
)
"""The privilege of one update of a table, by its action. All others need `TABLE_WRITE_PROPERTIES`."""

_by_actions: dict[frozenset[str], Operation] = {}


def commit_table_operation(actions: Iterable[str]) -> Operation:
    """`commit-table` with these updates: one need for each kind; without any, that of writing properties."""
    wanted = frozenset(actions)
    known = _by_actions.get(wanted)
    if known is None:
        needs = {UPDATE_NEEDS.get(action, P.TABLE_WRITE_PROPERTIES) for action in wanted}
        ordered = tuple(sorted(needs or {P.TABLE_WRITE_PROPERTIES}))
        known = Operation(COMMIT_TABLE.name, (ordered,), COMMIT_TABLE.kinds)
        # Bounded: actions are a few known words, and only so many sets of them are ever sent.
        if len(_by_actions) < 4096:
            _by_actions[wanted] = known
    return known
