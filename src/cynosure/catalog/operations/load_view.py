"""Load a view, or ask whether it exists. Nothing here reads object storage."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_view_ref


async def load_view(catalog: OpenCatalog, caller: Caller, name: Identifier) -> ViewState:
    """The current version of a view; `NoSuchView` when there is none."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.LOAD_VIEW, catalog.view(name))
    ref = await require_view_ref(state, name)
    return (await state.load_many(VIEW, [ref.id]))[0]


async def view_exists(catalog: OpenCatalog, caller: Caller, name: Identifier) -> None:
    """`NoSuchView` when there is none; its object is not read."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.VIEW_EXISTS, catalog.view(name))
    await require_view_ref(state, name)
