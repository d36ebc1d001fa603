"""What a database must be able to do to hold a catalog.

A backend stores rows of bytes and swaps one row at a time. It knows nothing of tables, grants or
indexes; those live above, in `persistence.store` and `persistence.commit`. Every promise in this
file has a test in `cynosure.testing.backend_kit`.

Three outcomes are kept apart on purpose:

- a **lost race** is an ordinary value (`False`), because the commit loop expects it many times a second;
- a **refusal** is an error: `Unavailable` when the database did not get or did not accept the request
  (nothing was applied), `TooLarge` when a row exceeds `Limits.row_bytes`, `BadInput` when a key or token
  breaks the rules below, `Misconfigured` when the store was never set up or cannot be this one,
  `NewerFormat` when a newer version laid it out;
- an **unknown outcome** (a time-out, a broken connection, a killed session after bytes left this
  process) of a call that writes is `OutcomeUnknown`. The effect may still appear *later*: one read
  of the row proves nothing.

Driver errors never pass: they are translated in the backend, with `raise ... from`.

Databases differ in the text they can hold as a key, so the contract takes what all of them can: every
text part of a key, and every token that is not empty, is 1 to `TEXT_BYTES` bytes of UTF-8 without NUL
and without lone surrogates. `persistence.row_rules` checks this for all backends.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, NewType, Protocol, TypeAlias

from msgspec import Struct

RealmId = NewType("RealmId", str)
CatalogId = NewType("CatalogId", str)
"""Stable id of a catalog, or `REALM_SCOPE` for what belongs to the realm itself. Never empty: some
databases refuse empty key parts."""
ObjId = NewType("ObjId", int)
"""63-bit integer, never negative, unique across the whole store (`persistence.ids`). A backend does not rely
on the uniqueness: its key is the whole `ObjKey`."""

SYSTEM_REALM = RealmId("_system")
REALM_SCOPE = CatalogId("_realm")

TEXT_BYTES = 255
"""Longest text part of a key, in UTF-8. Four of them fit the smallest key limit of a supported database
(1024 bytes, DynamoDB's sort key)."""
MAX_ID = (1 << 63) - 1


class ObjKey(NamedTuple):
    """Primary key of an object row. Ordered as a tuple; every backend scans in this order.

    Strings are compared by their UTF-8 bytes (which is also the order of Python's strings), ids as
    numbers.
    """

    realm: RealmId
    catalog: CatalogId
    type: str
    id: ObjId


class Row(NamedTuple):
    """One object row."""

    key: ObjKey
    blob: bytes
    token: str = ""
    """Version token of a conditionally written row. Empty for immutable rows."""
    created_us: int = 0
    """When this version was written, by the writer's clock. Garbage collection compares it with its grace."""


class RowHead(NamedTuple):
    """A row without its blob, as a scan returns it."""

    key: ObjKey
    token: str
    created_us: int
    blob_bytes: int


class Insert(NamedTuple):
    """As `Backend.insert`, one of many (`Backend.write_each`)."""

    row: Row

    @property
    def key(self) -> ObjKey:
        """The row it is about."""
        return self.row.key


class Swap(NamedTuple):
    """As `Backend.swap`, one of many."""

    row: Row
    expected_token: str

    @property
    def key(self) -> ObjKey:
        """The row it is about."""
        return self.row.key


class DeleteIf(NamedTuple):
    """As `Backend.delete_if`, one of many."""

    key: ObjKey
    expected_token: str


ConditionalWrite: TypeAlias = Insert | Swap | DeleteIf


class RefKey(NamedTuple):
    """Primary key of a reference row."""

    realm: RealmId
    catalog: CatalogId
    name: str


class Reference(NamedTuple):
    """One reference row: the only row that ever changes in a commit."""

    key: RefKey
    head: ObjId
    """The current commit; 0 for a reference that nobody has committed to."""
    generation: int
    """Raised by garbage collection (and a disaster reset), never by a commit: work prepared under an
    older generation may point to collected objects and must be prepared again."""
    recent: tuple[ObjId, ...]
    """Earlier heads, newest first, limited in number; for disaster recovery."""
    created_us: int


class Limits(Struct, frozen=True):
    """What a backend declares about itself. Production and kit read the same values."""

    row_bytes: int
    """Largest blob of one row. Larger objects are split into parts above the SPI. The smallest blob is
    empty."""
    swap_carries_rows: bool
    """`swap_ref(rows=...)` costs about one write, not one per row. When false the commit loop writes
    prepared objects early and in parallel instead."""
    is_shared: bool
    """Several processes may open the same store. When false, `--workers` above 1 is refused."""
    is_durable: bool
    """Acknowledged writes survive the death of this process."""
    is_local: bool = False
    """The database is on this machine and dies with it at the latest: what such a death undoes, no process
    that goes on has relied on."""
    fetch_batch: int = 256
    """How many keys one `fetch` should be given at most."""


class Backend(Protocol):
    """One database, seen as immutable rows, conditionally written rows, and references.

    Consistency: `fetch` of rows written with `insert`/`swap`, and `fetch_refs`, are linearizable (a
    read that starts after a write was acknowledged, to anyone, sees it or something newer). `fetch`
    of immutable rows sees every row that was acknowledged before. A backend on a database with
    weaker defaults must ask for this (Cassandra SERIAL, DynamoDB ConsistentRead, MongoDB
    linearizable), although no emulator shows the difference.

    All methods may be called concurrently from one event loop. Cancellation of a call that writes
    leaves its outcome unknown to the caller, never half-applied (`write`, `write_each` and `delete` of
    several rows, which are not atomic, may be applied in part). An empty sequence of keys, rows or writes is
    answered without asking the database. `BadInput` and `TooLarge` are raised before anything is sent.
    """

    @property
    def limits(self) -> Limits:
        """Constant for the life of the backend."""
        ...

    async def setup(self) -> None:
        """Create what must exist (tables, files). Idempotent, safe to race with other processes.

        A place that holds something else is refused untouched (`Misconfigured`), one that a newer
        version laid out as well (`NewerFormat`). On a store that was never set up every other method
        raises `Misconfigured`.
        """
        ...

    async def close(self) -> None:
        """Release connections and threads, after the writes that already run.

        Later calls raise `Unavailable`; closing again does nothing.
        """
        ...

    # --- objects -------------------------------------------------------------------------------

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        """Read rows, in the order of `keys`; `None` where no row exists. Duplicates are allowed."""
        ...

    async def write(self, rows: Sequence[Row]) -> None:
        """Write immutable rows under new keys. Their tokens are empty.

        Not atomic: after an error any subset may exist. A key that already exists is left alone
        (ids are unique, so it can only be this same row, written before an unknown outcome).
        """
        ...

    async def insert(self, row: Row) -> bool:
        """Create a conditionally written row. `False` when the key exists. `row.token` must not be empty."""
        ...

    async def swap(self, row: Row, expected_token: str) -> bool:
        """Replace blob, token and created-at if the row exists and its token equals `expected_token`.

        Neither token is empty: an immutable row cannot be swapped. Repeating a swap that was applied
        is a lost race, provided that the tokens differ.
        """
        ...

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        """Delete if the row exists and its token equals `expected_token`, which is not empty."""
        ...

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        """Apply many conditional writes, each on its own: what `insert`, `swap` or `delete_if` would say.

        In the order of `writes`, in one round trip where the database can. The writes are of different
        rows (`BadInput` otherwise), and a lost one does not hinder the others. Nothing binds them: after
        an unknown outcome any subset may have been applied, or may yet be; after a refusal none was.

        `is_relaxed`: an acknowledged write is seen by everybody at once and survives the death of this
        process, but the death of the machine or of the database server may undo it, though never anything
        that was acknowledged without this word. For rows that may be forgotten: it saves the wait for the
        disk.
        """
        ...

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        """Delete rows whatever they hold; missing ones are ignored. Only garbage collection calls this."""
        ...

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        """Up to `limit` row heads of the whole store in key order, after `after`. An empty list is the end.

        `limit` is positive; a page may be shorter and not the last. `after` is any key that could exist. A
        row that exists during the whole scan is returned; one that comes or goes may be.
        """
        ...

    # --- references ----------------------------------------------------------------------------

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        """Read references from the database itself, in the order of `keys`, each linearizable on its own."""
        ...

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        """As `fetch_refs`, but before this call returns; `None` when that cannot be done, now or ever.

        For databases inside this process, where the round trip would cost more than the read. The promise is
        the same: what the database holds at this moment, never what is remembered of it. It must cost
        microseconds and wait for nothing (no lock, no network), because the event loop stands still
        meanwhile. Whoever gets `None` asks `fetch_refs`.
        """
        ...

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        """All references, or those of one realm, in key order."""
        ...

    async def insert_ref(self, ref: Reference) -> bool:
        """Create a reference. `False` when the key exists."""
        ...

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        """Move a reference if its head and generation still equal those of `expected`.

        All fields of `updated` are stored; its key is that of `expected`. `False` also when there is
        no such reference. `rows` are immutable rows that must be readable, by everyone, no later than
        the moved reference is. When the swap is lost (`False`) they may or may not exist. Repeating the
        same call after an unknown outcome is allowed; after success it is a lost race, provided that
        head or generation changed.
        """
        ...

    async def delete_ref(self, expected: Reference) -> bool:
        """Delete a reference if its head and generation still equal those of `expected`."""
        ...

    def hold_ref(self, key: RefKey, head_type: str) -> AbstractAsyncContextManager["HeldRef"] | None:
        """A turn at moving this reference, shared fairly between processes; `None` when not offered.

        An optimisation for contended references: while one holds, other holders wait, so their
        swaps are not prepared in vain. The holder moves the reference with `swap_ref`, as everybody does.
        A turn is never needed for correctness, excludes nobody who does not ask, and ends by itself when
        the holder dies or keeps it for too long. `head_type` is the type of the head's object, so that its
        row can come along in the same round trip. Entering raises `Unavailable` when the turn does not come
        within the backend's bound; leaving, also by an error or a cancellation, ends the turn.
        """
        ...


class HeldRef(Protocol):
    """A turn at one reference (`Backend.hold_ref`)."""

    @property
    def current(self) -> Reference | None:
        """The reference as read when the turn began."""
        ...

    @property
    def head_row(self) -> Row | None:
        """The head's own row, when the backend read it in the same round trip and it exists."""
        ...


class BackendFactory(Protocol):
    """What an entry point in group `cynosure.backends` names; the entry's name is the URL scheme."""

    def __call__(self, url: str, options: Mapping[str, str]) -> Backend:
        """Make a backend for this URL without connecting. A URL it cannot read is `Misconfigured`."""
        ...
