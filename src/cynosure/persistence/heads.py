"""Reads of references, linearizable and shared.

A database in this process answers at once (`Backend.fetch_refs_now`), and there is nothing to share. Else
a reader may share a database read only if that read *starts after the reader arrived*; joining one that
is already under way could miss a commit acknowledged in between. So while reads are under way, newcomers
gather for the next one, and its cost is divided among them.

Who knows early which heads a request will want asks for all of them at once (`read_ahead`), so that they
share one read instead of following each other.

Must not break: with the default `max_staleness_s=0`, a read never returns a head older than one that
was acknowledged, by any server, before the read began (docs/invariants.md).
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import ref as weak

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import NotFound
from cynosure.persistence.spi import Backend, Reference, RefKey

_CONCURRENT_READS = 2
"""One read under way must not make the next reader wait for its whole round trip; more than two
would only divide the sharing."""


class _Recent(NamedTuple):
    true_s: float
    """At this time or later it was the head."""
    known_s: float
    """Reads that began earlier may know less."""
    ref: Reference


_Asked = dict[RefKey, "asyncio.Future[Reference | None]"]
_Answer = Reference | asyncio.Future[Reference | None] | None
"""A head that was read, or is being read."""


class _Ahead(Struct):
    """What a request has begun to read.

    It answers as many questions as were expected; whoever asks again, to learn what changed, asks the
    database.
    """

    task: "weak[asyncio.Task[Any]] | None"
    """Of the request. Tasks that it begins inherit its context, and may outlive it and work for others.

    Weak: a task holds its context, and so this. Every request would be left to the garbage collector
    (measured: 4 µs each)."""
    begun: dict[RefKey, _Answer]
    uses: dict[RefKey, int]
    """How many questions each of them answers yet."""

    def use(self, key: RefKey) -> _Answer:
        """The answer to one more question."""
        self.uses[key] -= 1
        return self.begun[key] if self.uses[key] else self.begun.pop(key)


_ahead: ContextVar[_Ahead | None] = ContextVar("heads_read_ahead", default=None)


def forget_ahead() -> None:
    """For a request that has waited for something: what it read ahead when it came is the past."""
    _ahead.set(None)


def _find_ahead(key: RefKey) -> _Ahead | None:
    """What this request has begun to read, if this is part of it."""
    ahead = _ahead.get()
    if ahead is None or key not in ahead.begun:
        return None
    return ahead if ahead.task is not None and ahead.task() is asyncio.current_task() else None


class Heads:
    """One per process and backend."""

    def __init__(self, backend: Backend, clock: Clock, *, max_staleness_s: float = 0.0) -> None:
        self._backend = backend
        self._clock = clock
        self._max_staleness_s = max_staleness_s
        self._gathering: _Asked = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._recent: dict[RefKey, _Recent] = {}
        self.reads = 0

    async def find(self, key: RefKey, *, is_fresh: bool = False) -> Reference | None:
        """The reference as the database has it, or `None`.

        `is_fresh` asks the database also where staleness is allowed or a read was begun ahead: for those who
        know of a newer head, and would be given the older one for as long as it is remembered.
        """
        if not is_fresh and (ahead := _find_ahead(key)) is not None:
            answer = ahead.use(key)
            return await asyncio.shield(answer) if isinstance(answer, asyncio.Future) else answer
        if self._max_staleness_s and not is_fresh:
            recent = self._recent.get(key)
            if recent is not None and self._clock.monotonic_s() - recent.true_s <= self._max_staleness_s:
                return recent.ref
        refs = self._find_now((key,))
        if refs is not None:
            return refs[0]
        # Shielded: one reader's cancellation must not take the answer from the others.
        return await asyncio.shield(self._gather(key))

    def read_ahead(self, keys: Iterable[RefKey]) -> None:
        """Begin to read heads that this request is going to ask for, all in one read.

        Call it once per request, as early as they are known; name a head as often as it will be asked for.
        """
        if self._max_staleness_s:
            return
        uses: dict[RefKey, int] = {}
        for key in keys:
            uses[key] = uses.get(key, 0) + 1
        answers: Sequence[_Answer] | None = self._find_now(tuple(uses))
        if answers is None:
            answers = [self._gather(key) for key in uses]
        task = asyncio.current_task()
        begun = dict(zip(uses, answers, strict=True))
        _ahead.set(_Ahead(None if task is None else weak(task), begun, uses))

    def take_ahead(self, key: RefKey) -> Reference | None:
        """As `find`, when the answer was read ahead and is there: without waiting. Else `None`."""
        ahead = _find_ahead(key)
        if ahead is None:
            return None
        answer = ahead.begun[key]
        if type(answer) is not Reference:
            return None
        ahead.use(key)
        return answer

    def get_ahead(self, key: RefKey) -> Reference | None:
        """What was read ahead for this request, if it is there by now. Does not count as a question.

        For those who only want to know whether what they remember is of this head.
        """
        ahead = _find_ahead(key)
        return None if ahead is None else _get_known(ahead.begun[key])

    def get_both_ahead(self, one: RefKey, other: RefKey) -> tuple[Reference, Reference] | None:
        """As `get_ahead` of two, when both are there."""
        ahead = _find_ahead(one)
        if ahead is None or other not in ahead.begun:
            return None
        first, second = _get_known(ahead.begun[one]), _get_known(ahead.begun[other])
        return None if first is None or second is None else (first, second)

    def drop_ahead(self, key: RefKey) -> None:
        """This request has moved the reference itself: what it read ahead is the past."""
        ahead = _ahead.get()
        if ahead is not None:
            ahead.begun.pop(key, None)

    def _gather(self, key: RefKey) -> "asyncio.Future[Reference | None]":
        future = self._gathering.get(key)
        if future is None:
            future = self._gathering[key] = asyncio.get_running_loop().create_future()
            if self._under_way < _CONCURRENT_READS:
                self._under_way += 1
                task = asyncio.create_task(self._read_gathered())
                self._readers.add(task)
                task.add_done_callback(self._readers.discard)
        return future

    async def load(self, key: RefKey, *, is_fresh: bool = False) -> Reference:
        """As `find`, for a reference that must exist."""
        ref = await self.find(key, is_fresh=is_fresh)
        if ref is None:
            raise missing_reference(key)
        return ref

    async def load_many(self, keys: Iterable[RefKey]) -> list[Reference]:
        """As `load` for several; they usually share one round trip."""
        wanted = list(keys)
        found = None if self._max_staleness_s else self._find_now(wanted)
        if found is None:
            return list(await asyncio.gather(*(self.load(key) for key in wanted)))
        for key, ref in zip(wanted, found, strict=True):
            if ref is None:
                raise missing_reference(key)
        return [ref for ref in found if ref is not None]

    def observe(self, ref: Reference, *, sent_s: float) -> None:
        """Remember a reference this process has just moved (only used with bounded staleness).

        Its age counts from when the swap was sent: the answer may have taken long, and others may have
        moved it since.
        """
        if self._max_staleness_s:
            self._recent[ref.key] = _Recent(sent_s, self._clock.monotonic_s(), ref)

    def _find_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        # Order: the time first, because an age counts from the start of its read.
        started_s = self._clock.monotonic_s() if self._max_staleness_s else 0.0
        refs = self._backend.fetch_refs_now(keys)
        if refs is not None:
            self.reads += 1
            if self._max_staleness_s:
                for ref in refs:
                    if ref is not None:
                        self._remember(started_s, ref)
        return refs

    async def _read_gathered(self) -> None:
        try:
            while self._gathering:
                await self._read_once()
        finally:
            # Counted here, not in the task's callback: between the two a newcomer would see a reader
            # that reads no more.
            self._under_way -= 1

    async def _read_once(self) -> None:
        wanted, self._gathering = self._gathering, {}
        started_s = self._clock.monotonic_s()
        self.reads += 1
        try:
            refs = await self._backend.fetch_refs(list(wanted))
        except BaseException as error:
            for future in wanted.values():
                if not future.done():
                    if isinstance(error, asyncio.CancelledError):
                        future.cancel()
                    else:
                        future.set_exception(error)
                        future.exception()  # Every waiter may be gone; that is not worth a warning.
            if not isinstance(error, Exception):
                raise
            return
        for future, ref in zip(wanted.values(), refs, strict=True):
            if ref is not None and self._max_staleness_s:
                self._remember(started_s, ref)
            if not future.done():
                future.set_result(ref)

    def _remember(self, started_s: float, ref: Reference) -> None:
        # A read that began before a swap of our own may end after it; it must not undo `observe`.
        recent = self._recent.get(ref.key)
        if recent is None or started_s > recent.known_s:
            self._recent[ref.key] = _Recent(started_s, started_s, ref)


def _get_known(answer: _Answer) -> Reference | None:
    if not isinstance(answer, asyncio.Future):
        return answer
    return answer.result() if answer.done() and not answer.cancelled() and not answer.exception() else None


def missing_reference(key: RefKey) -> NotFound:
    """The error for a reference that must exist."""
    return NotFound(
        "The store has no such reference",
        fix="Run 'cynosure store init', or check the realm and catalog.",
        realm=key.realm,
        catalog=key.catalog,
        name=key.name,
    )
