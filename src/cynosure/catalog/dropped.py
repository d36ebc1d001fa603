"""What was dropped, kept for the undrop window.

A drop moves an entry from the index `names` to the index `dropped`, in one commit; so the objects stay
reachable, and garbage collection leaves them alone, until the window has passed and the entry is removed.

Must not break: whoever removes a key of `names` for good adds its entry here in the same commit. Policies
are not kept: they hold no data, and what they were attached to would have to come back with them.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from cynosure.auth.caller import Caller
from cynosure.persistence.commit import Change
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

Kind = Literal["table", "view", "generic-table", "namespace"]


class DroppedEntity(Stored, frozen=True):
    """Something dropped, as it was then."""

    kind: Kind
    entity_id: ObjId
    """Stable id; an undrop gives it back, and with it the grants."""
    path: tuple[str, ...]
    """Namespace levels and, for all but namespaces, the name."""
    state: ObjRef
    dropped_us: int
    principal: str
    location: str = ""
    is_purge_requested: bool = False
    """Whether the client asked for the files to go too."""
    claims: tuple[str, ...] = ()
    """What it held besides its location. It holds all of it until it cannot be restored any more."""
    heir_id: int = -1
    """Who may have its places before that: the principal that dropped it, if it might read it; -1: nobody."""

    @property
    def places(self) -> tuple[str, ...]:
        """All that it holds to itself."""
        return (self.location, *self.claims)

    def at(self, path: tuple[str, ...]) -> "DroppedEntity":
        """The same under another path."""
        return msgspec.structs.replace(self, path=path)


def _refs(value: DroppedEntity) -> Iterable[ObjRef]:
    return (value.state,)


DROPPED = struct_type("dropped", DroppedEntity, refs=_refs, version=2)


class Removal:
    """The entry, object and feed line of one drop; join them into the commit that drops."""

    __slots__ = ("change", "entry", "new")

    def __init__(
        self,
        kind: Kind,
        *,
        drop_id: ObjId,
        entity_id: ObjId,
        path: tuple[str, ...],
        name_key: bytes,
        state: ObjRef,
        caller: Caller,
        now_us: int,
        location: str = "",
        claims: tuple[str, ...] = (),
        is_purge_requested: bool = False,
        is_reader: bool = False,
    ) -> None:
        entity = DroppedEntity(
            kind=kind,
            entity_id=entity_id,
            path=path,
            state=state,
            dropped_us=now_us,
            principal=caller.principal,
            heir_id=caller.principal_id if is_reader else -1,
            location=location,
            claims=claims,
            is_purge_requested=is_purge_requested,
        )
        self.new = NewObject(DROPPED, drop_id, entity)
        self.entry = {encode_id_key(drop_id): ObjRef(drop_id, DROPPED.name).pack()}
        """For the index `dropped`."""
        self.change = Change(
            kind=f"{kind}-dropped",
            index="names",
            key=name_key,
            before=state.pack(),
            detail=raw_detail({"id": entity_id, "path": path}),
        )
