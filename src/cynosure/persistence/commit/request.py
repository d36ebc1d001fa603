"""A change to a reference, as an operation asks for it, and what comes of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cynosure.persistence.commit.records import Change
from cynosure.persistence.commit.view import View
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.persistence.store import NewObject

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Joined:
    """A further request that the same change answers: recorded beside it, in one commit."""

    principal: str
    operation: str
    request_id: str = ""
    key_hash: str = ""
    """Listed in `Request.joined_keys`."""
    actor: str = ""
    roles: tuple[str, ...] = ()
    feed: Sequence[Change] = ()
    receipt: bytes = b""


@dataclass(frozen=True, slots=True)
class Prepared(Generic[R]):
    """What a request wants to change, worked out on one state."""

    result: R
    """Handed to the caller when the change is committed."""
    changes: Mapping[str, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    """Per index: new value of a key, or `None` to remove it. None at all: nothing is committed."""
    objects: Sequence[NewObject] = ()
    """Immutable objects the new values point to, not written yet."""
    feed: Sequence[Change] = ()
    """What the change feed will say."""
    guards: Mapping[RefKey, ObjId] = field(default_factory=dict)
    """Heads of *other* references this decision relied on (grants, principals). If one has moved by
    the commit phase, the request is prepared again, so a revoked right cannot be used in between."""
    renew: Callable[[], Awaitable[Mapping[RefKey, ObjId]]] | None = None
    """Decides anew what `guards` are about, on the state this was prepared on; the heads it rests on now.
    Where it is given, a head that moved costs this and not all of preparing. An error: prepare again."""
    receipt: bytes = b""
    """Stored with a request that has an idempotency key: what its answer can be given from again."""
    joined: Sequence[Joined] = ()
    """Other requests that this change answers too."""

    @property
    def receipts_bytes(self) -> int:
        """What all receipts add to a commit."""
        return len(self.receipt) + sum(len(each.receipt) for each in self.joined)


Prepare = Callable[[View], Awaitable[Prepared[R]]]
"""Works out a change on the state it is given: resolve, authorize, check requirements, apply.

May run several times, also at once with others', so its only effects outside are objects and files
under fresh ids. Everything it knows of the state must come through the view. An error it raises is
the request's own refusal and reaches the caller as it is."""


@dataclass(frozen=True, slots=True)
class Request(Generic[R]):
    """One change, asked for by one principal."""

    prepare: Prepare[R]
    principal: str
    operation: str
    request_id: str = ""
    key_hash: str = ""
    """Hash of the Idempotency-Key, lower-case hexadecimal; empty without one."""
    joined_keys: tuple[str, ...] = ()
    """Keys of all requests that `Prepared.joined` may name: none of them is committed twice either."""
    actor: str = ""
    """The service that acts for the principal; empty when it acts itself."""
    roles: tuple[str, ...] = ()
    """Roles of the principal that were active."""
    is_recorded: bool = False
    """Committed even when it changes nothing, so that its key and receipt are in the chain."""
    is_exclusive: bool = False
    """Prepared on exactly the state it replaces and committed alone: for changes that depend on the
    whole state, such as a restore. Holds up the queue while it is prepared."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that may be committed with it."""
        return (self.key_hash, *self.joined_keys) if self.key_hash else self.joined_keys


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """The request is in the chain (or needed no change: then `commit_id` is the state it saw)."""

    result: R
    commit_id: ObjId
    sequence: int


@dataclass(frozen=True, slots=True)
class AlreadyCommitted:
    """A request with the same idempotency key is in the chain; nothing was applied again."""

    commit_id: ObjId
    key_hash: str
    """Which key: one of several, where requests were joined."""
