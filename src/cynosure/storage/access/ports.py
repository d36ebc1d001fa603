"""The words and contracts of giving clients access to files.

A maintainer must not break: a scope is where somebody may read, or read and write; nothing in this package
widens one. Credentials are never shown by `repr`, logged or stored.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from cynosure.storage.location import Location


class Scope(Struct, frozen=True):
    """Where files may be reached: everything below these locations, and nothing beside them."""

    locations: tuple[Location, ...]
    """None of them inside another one, in the order in which a client is told them."""
    is_writable: bool
    """Whether files may be written and deleted as well as read and listed."""


class Subject(Struct, frozen=True):
    """Whom access is given to, for the store's own log: session names and tags."""

    realm: str
    principal: str
    principal_id: int
    """Names may be given again; this is what tells two principals apart."""
    catalog: str
    table: str
    """As messages name it."""


class Credential(Struct, frozen=True, repr_omit_defaults=True):
    """What a client needs below one prefix, as the properties of its FileIO."""

    prefix: str
    config: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Credential({self.prefix!r}, …)"


class Vended(Struct, frozen=True):
    """Credentials that were made for one scope and one subject."""

    credentials: tuple[Credential, ...]
    """One for each location of the scope."""
    issued_ms: int
    expires_ms: int


class Vendor(Protocol):
    """Makes credentials: one request to a token service, no memory. Kit: `cynosure.testing.vendor_kit`."""

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        """New credentials for exactly this scope.

        `StorageRefused` when the store does not give any, `StorageUnavailable` when it does not answer.
        """
        ...


class StoreRequest(Struct, frozen=True):
    """A request that a client wants to send to the store, before it is signed."""

    method: str
    uri: str
    headers: Mapping[str, list[str]]
    region: str = ""
    body: str | None = None
    """Only of requests whose body says what they reach, such as the deletion of many objects."""


class Reached(Struct, frozen=True):
    """What a request would do, and to what."""

    action: Literal["read", "list", "write", "delete"]
    locations: tuple[Location, ...]
    """Every place it touches; the prefix of a listing."""
    sources: tuple[Location, ...] = ()
    """Places that are read besides: the source of a copy."""


class Signed(Struct, frozen=True):
    """A request as the client is to send it."""

    uri: str
    headers: Mapping[str, list[str]]


class Inspected(Protocol):
    """A request that is fully understood, and can be signed as exactly that."""

    @property
    def reached(self) -> Reached:
        """What it would do."""
        ...

    async def sign(self, scope: Scope, subject: Subject) -> Signed:
        """The request, signed. Whoever calls has checked every location of `reached` against the scope.

        `StorageRefused` when the store gives no keys, `StorageUnavailable` when it does not answer.
        """
        ...


class Signer(Protocol):
    """Signs requests to the store with keys that clients never see, and only what it has inspected."""

    def inspect(self, request: StoreRequest) -> Inspected:
        """The request as the store would read it; `BadInput` for one that is not fully understood."""
        ...
