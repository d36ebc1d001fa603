"""The stable id of a table or view, which its state holds: what renames keep and grants name."""

from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.managed.view_state import VIEW
from cynosure.persistence.commit import View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


async def load_identity(view: View, ref: ObjRef) -> tuple[ObjId, str]:
    """A table's stable id and location."""
    if ref.type == POINTER.name:
        pointer = (await view.load_many(POINTER, [ref.id]))[0]
        return pointer.id, pointer.location
    state = (await view.load_many(TABLE, [ref.id]))[0]
    return state.id, state.location


async def load_view_id(view: View, ref: ObjRef) -> ObjId:
    """A view's stable id."""
    return (await view.load_many(VIEW, [ref.id]))[0].id
