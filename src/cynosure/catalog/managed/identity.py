"""The stable id of a table or view, which renames keep and grants name, and the places that it holds."""

from typing import NamedTuple

from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.managed.view_state import VIEW
from cynosure.persistence.commit import View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


class Held(NamedTuple):
    """The places that a table or view holds, as they are spelled in its state."""

    id: ObjId
    location: str
    claims: tuple[str, ...] = ()
    """Others, none of them inside the location or another."""


async def load_held(view: View, ref: ObjRef) -> Held:
    """A table's stable id, and what it holds."""
    if ref.type == POINTER.name:
        pointer = (await view.load_many(POINTER, [ref.id]))[0]
        return Held(pointer.id, pointer.location, pointer.claims)
    state = (await view.load_many(TABLE, [ref.id]))[0]
    return Held(state.id, state.location, state.claims)


async def load_identity(view: View, ref: ObjRef) -> tuple[ObjId, str]:
    """A table's stable id and location."""
    held = await load_held(view, ref)
    return held.id, held.location


async def load_view_id(view: View, ref: ObjRef) -> ObjId:
    """A view's stable id."""
    return (await view.load_many(VIEW, [ref.id]))[0].id
