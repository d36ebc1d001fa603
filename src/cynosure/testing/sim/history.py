"""What happened in a run, in one total order.

Every event takes the next number, so "before" means the same to everyone whatever the clocks of the
servers say. The checker reads the typed records; the log is for people, and for the test that one seed
always gives the same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cynosure.persistence.backends.memory import MemoryStore
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.ids.snowflake import decompose
from cynosure.persistence.parts import join, part_keys
from cynosure.persistence.spi import ObjId, ObjKey, Reference, RefKey, Row
from cynosure.testing.sim.loop import SimLoop
from cynosure.testing.sim.operations import Operation


class BrokenRule(Exception):
    """The run broke a promise. `rule` names it, the text says how."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One request as a client sent it to one server."""

    request_id: str
    operation: Operation
    reference: RefKey
    key_hash: str
    server: str
    invoked: int
    invoked_s: float
    started_s: float = float("-inf")
    """When the server began with it; its deadline counts from there."""
    ended: int = 1 << 62
    ended_s: float = float("inf")
    outcome: str = "pending"
    """`committed`, `already`, `refused`, `unavailable`, `unknown`, `damaged`."""
    error: str = ""
    commit_id: ObjId = NO_COMMIT
    sequence: int = 0
    result: Any = None
    preparations: dict[int, int] = field(default_factory=dict)
    """Number of a preparation to the event at which it had read everything."""
    guards: dict[int, tuple[RefKey, ObjId]] = field(default_factory=dict)
    """Number of a preparation to the head of another reference that it relied on."""


class Move(NamedTuple):
    """A reference row changed."""

    at: int
    at_s: float
    before: Reference | None
    after: Reference
    commit: Row | None
    """The new head's whole row; `None` when the head did not change."""


class HeadRead(NamedTuple):
    """A head a client was given."""

    reference: RefKey
    server: str
    invoked: int
    invoked_s: float
    ended: int
    head: ObjId


class Listing(NamedTuple):
    """A whole listing of one state, read page by page."""

    reference: RefKey
    commit_id: ObjId
    names: tuple[str, ...]
    balance: int


class History:
    """Records of one run."""

    def __init__(self, loop: SimLoop, *, has_wild_clock: bool = False) -> None:
        self._loop = loop
        self._has_wild_clock = has_wild_clock
        self._events: list[tuple[float, str, str, tuple[Any, ...]]] = []
        self.attempts: dict[str, Attempt] = {}
        self.moves: dict[RefKey, list[Move]] = {}
        self.reads: list[HeadRead] = []
        self.listings: list[Listing] = []
        self.sent: dict[ObjId, float] = {}
        """Commit to the time at which its swap was first sent."""
        self.ids: dict[ObjId, str] = {}
        self._newest_of: dict[int, ObjId] = {}
        """Node id to the newest id made with it, by anyone."""
        self.counts: dict[str, int] = {}
        self.breaches: list[BrokenRule] = []

    def note(self, who: str, what: str, *details: Any) -> int:
        """Take the next event number and write a line of the log."""
        if not self._loop.is_over:
            self._events.append((self._loop.time(), who, what, details))
        return len(self._events)

    @property
    def now_s(self) -> float:
        """True time."""
        return self._loop.time()

    def note_move(self, move: Move) -> None:
        """A reference changed in the database."""
        self.moves.setdefault(move.after.key, []).append(move)

    def count(self, name: str, by: int = 1) -> None:
        """Count something worth knowing of a run."""
        self.counts[name] = self.counts.get(name, 0) + by

    def lines(self, last: int | None = None) -> list[str]:
        """The log, or its tail."""
        first = 0 if last is None else max(0, len(self._events) - last)
        return [
            f"{number:6d} {at_s:10.4f} {who:<9} {what} {' '.join(map(str, details))}".rstrip()
            for number, (at_s, who, what, details) in enumerate(self._events[first:], first + 1)
        ]

    def note_id(self, server: str, obj_id: ObjId) -> None:
        """An id was made; nobody may have made it before."""
        if obj_id in self.ids:
            self.breach("ids are unique", f"{server} made {obj_id}, which {self.ids[obj_id]} had made")
        node = decompose(obj_id).node
        # With wild clocks a node id may have two holders at once, in separate spans of time.
        if obj_id <= self._newest_of.get(node, 0) and not self._has_wild_clock:
            text = f"{server} made {obj_id} after {self._newest_of[node]} of the same node id"
            self.breach("the next holder of a node id starts later", text)
        self._newest_of[node], self.ids[obj_id] = obj_id, server

    def breach(self, rule: str, text: str) -> None:
        """Note a broken rule. Not raised here: this may run below production code, which would catch it."""
        if self._loop.is_over:
            return  # What a task does while it is ended from outside proves nothing.
        self.note("checker", "BROKEN", rule, text)
        self.breaches.append(BrokenRule(rule, text))


class WatchedRows(dict[ObjKey, Row]):
    """The rows of the database; counts what is deleted."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history
        self.see: Callable[[ObjKey, Row | None, Row | None], None] | None = None
        """Called with every updateable row before it is written or removed."""

    def __setitem__(self, key: ObjKey, row: Row) -> None:
        if self.see is not None:
            self.see(key, self.get(key), row)
        super().__setitem__(key, row)

    def __delitem__(self, key: ObjKey) -> None:
        if self.see is not None:
            self.see(key, self.get(key), None)
        self._history.count(f"rows removed of {key.type}")
        super().__delitem__(key)

    def pop(self, key: ObjKey, default: Any = None) -> Any:
        """Only deletion of garbage calls this."""
        if key in self:
            self._history.count("rows collected")
        return super().pop(key, default)


class WatchedRefs(dict[RefKey, Reference]):
    """The references of the database; every change becomes a `Move` with the commit it leads to."""

    def __init__(self, history: History, rows: WatchedRows) -> None:
        super().__init__()
        self._history = history
        self._rows = rows

    def __setitem__(self, key: RefKey, ref: Reference) -> None:
        before = self.get(key)
        super().__setitem__(key, ref)
        commit = None
        if ref.head and (before is None or before.head != ref.head):
            commit = self._whole(ObjKey(key.realm, key.catalog, "commit", ref.head))
        at = self._history.note("database", "moved", key.name, ref.head, f"generation={ref.generation}")
        self._history.note_move(Move(at, self._history.now_s, before, ref, commit))

    def _whole(self, key: ObjKey) -> Row | None:
        row = self._rows.get(key)
        if row is None:
            self._history.breach("rows come before the reference", f"head {key.id} has no row")
            return None
        parts = [self._rows.get(part) for part in part_keys(row)]
        return join(row, parts) if parts else row


def watched_store(history: History, rows: WatchedRows | None = None) -> MemoryStore:
    """A database whose changes are recorded."""
    rows = WatchedRows(history) if rows is None else rows
    return MemoryStore(rows=rows, refs=WatchedRefs(history, rows))
