"""Whether somebody may know anything of a thing that was perhaps never seen here.

Asked before a remote is: of the way to it as far as it is known (`catalog.targets.Veiled`), for anything that
could be done with it. Who may do nothing causes no request, and is refused by the operation itself in the
words of any other catalog. Who may do something is authorized again afterwards, on what is there then.

Must not break: this lets nobody do anything. It only decides who makes the remote be asked.
"""

from collections.abc import Sequence
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, UPDATE_NEEDS, Operation, commit_table_operation
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.filtering import Sight
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.seeing import find_permission
from cynosure.catalog.targets import InCatalog
from cynosure.persistence.commit import State

_TABLE: Final = (
    ops.TABLE_EXISTS,
    ops.DROP_TABLE,
    OPERATIONS["grant-on-table"],
    Operation("attach-policy-to-table", ((Privilege.TABLE_ATTACH_POLICY,),), ("table",)),
    Operation("detach-policy-from-table", ((Privilege.TABLE_DETACH_POLICY,),), ("table",)),
    *(commit_table_operation([action]) for action in UPDATE_NEEDS),
)
"""Between them, every privilege that means anything on a table."""
_VIEW: Final = (ops.VIEW_EXISTS, ops.DROP_VIEW, OPERATIONS["grant-on-view"])
_NAMESPACE: Final = (
    ops.NAMESPACE_EXISTS,
    ops.DROP_NAMESPACE,
    ops.CREATE_NAMESPACE,
    ops.LIST_TABLES,
    ops.CREATE_TABLE,
    ops.LIST_VIEWS,
    ops.CREATE_VIEW,
    ops.LIST_POLICIES,
    ops.CREATE_POLICY,
    OPERATIONS["grant-on-namespace"],
    Operation("attach-policy-to-namespace", ((Privilege.NAMESPACE_ATTACH_POLICY,),), ("namespace",)),
    Operation("detach-policy-from-namespace", ((Privilege.NAMESPACE_DETACH_POLICY,),), ("namespace",)),
)


async def may_know_table(catalog: OpenCatalog, caller: Caller, table: Identifier, view: State) -> bool:
    """Whether the caller may do anything at all with a table of this name."""
    # Any table: what is granted by name is granted on a facade.
    return await _may_one_of(catalog, caller, _TABLE, catalog.any_table(table), view)


async def may_know_view(catalog: OpenCatalog, caller: Caller, name: Identifier, view: State) -> bool:
    """Whether the caller may do anything at all with a view of this name."""
    return await _may_one_of(catalog, caller, _VIEW, catalog.view(name), view)


async def may_know_namespace(catalog: OpenCatalog, caller: Caller, namespace: Namespace, view: State) -> bool:
    """Whether the caller may do anything with a namespace, or something that is in it."""
    if await _may_one_of(catalog, caller, _NAMESPACE, catalog.namespace(namespace), view):
        return True
    return await Sight(catalog.shared.authorizer, caller, catalog.entity.id, view).leads_somewhere(namespace)


async def may_grant_on_table(catalog: OpenCatalog, caller: Caller, table: Identifier, view: State) -> bool:
    """Whether the caller may grant something on a table of this name."""
    return await _may_one_of(catalog, caller, [OPERATIONS["grant-on-table"]], catalog.any_table(table), view)


async def may_write_table(catalog: OpenCatalog, caller: Caller, table: Identifier, view: State) -> bool:
    """Whether the caller may write the files of a table of this name, and so know where they are."""
    return await _may_one_of(catalog, caller, [ops.LOAD_TABLE_TO_WRITE], catalog.any_table(table), view)


async def _may_one_of(
    catalog: OpenCatalog, caller: Caller, operations: Sequence[Operation], target: InCatalog, view: State
) -> bool:
    authorizer = catalog.shared.authorizer
    for operation in operations:
        if await find_permission(authorizer, caller, operation, (target,), view, is_hiding=True) is not None:
            return True
    return False
