"""Vended credentials in memory, so that a thousand loads of a table cost one request to the token service.

A maintainer must not break: nobody is given credentials with less than the wanted part of their life left,
whatever the wall clock is set to meanwhile; whoever waits for new ones makes nobody else wait; and all that
tells two holders apart is in the key.
"""

import asyncio
from collections import OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import Log
from cynosure.storage.access.ports import Scope, Subject, Vended, Vendor
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.metrics import MINT_SECONDS, MINTED, TALLIES

_MOST_KEPT: Final = 10_000
_MOST_MINTING: Final = 64
"""A token service that is slow is not helped by more requests."""
_REFUSED_US: Final = 15_000_000
_UNAVAILABLE_US: Final = 1_000_000
"""For how long a failure is repeated: clients try again, and a store without a token service would be asked
with every load of every table."""
_STALLED_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 10.0
"""A failure that took longer than the one to find out is repeated to everybody, for as long as it took or the
other: else a token service that hangs would make every table wait for its own turn to hear so."""

_log = Log(__name__)
_Key = tuple[object, ...]
T = TypeVar("T")


class _Kept(Generic[T]):
    """So many values, each until its time; those that were not asked for go first.

    Time is up when either clock says so: one can be set back, the other does not count a machine's sleep.
    """

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[_Key, tuple[int, float, T]] = OrderedDict()

    def get(self, key: _Key) -> T | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        until_us, until_s, value = kept
        if self._clock.now_us() > until_us or self._clock.monotonic_s() > until_s:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: _Key, value: T, for_us: int, *, until_us: int | None = None) -> None:
        """Keep it for so long, and no longer than until the wall clock says so."""
        until_s = self._clock.monotonic_s() + for_us / 1_000_000
        self._kept[key] = (self._clock.now_us() + for_us if until_us is None else until_us, until_s, value)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class _Stall(NamedTuple):
    """That the token service kept somebody waiting for nothing."""

    error: StorageUnavailable
    until_s: float


class Vending:
    """The credentials of one storage that are still good."""

    def __init__(
        self,
        vendor: Vendor,
        clock: Clock,
        *,
        kind: str = "other",
        min_remaining: float = 0.5,
        timeout_s: float = 30.0,
        most_kept: int = _MOST_KEPT,
    ) -> None:
        self._vendor = vendor
        self._clock = clock
        self._kind = kind
        self._min_remaining = min_remaining
        self._timeout_s = timeout_s
        self._kept: _Kept[Vended] = _Kept(clock, most_kept)
        self._failed: _Kept[StorageRefused | StorageUnavailable] = _Kept(clock, most_kept)
        self._minting: dict[_Key, asyncio.Task[Vended]] = {}
        self._turns = asyncio.Semaphore(_MOST_MINTING)
        self._stall: _Stall | None = None

    def get(self, scope: Scope, subject: Subject) -> Vended | None:
        """Credentials that are in memory and good for long enough."""
        kept = self._kept.get(_key(scope, subject))
        if kept is not None:
            TALLIES.vended(self._kind)
        return kept

    async def vend(self, scope: Scope, subject: Subject) -> Vended:
        """Credentials for this scope, from memory or new.

        A failure is told to all who waited for it, and to those who ask in the next seconds.
        """
        if (kept := self.get(scope, subject)) is not None:
            return kept
        # Shielded: one who gives up does not take the credentials from the others who wait.
        return await asyncio.shield(self.renew(scope, subject))

    def renew(self, scope: Scope, subject: Subject) -> asyncio.Task[Vended]:
        """New credentials for this scope, on their way: nobody has to wait for them. Fails as `vend` does."""
        key = _key(scope, subject)
        task = self._minting.get(key)
        if task is None:
            if (failure := self._failed.get(key) or self._find_stall()) is not None:
                raise type(failure)(failure.message, fix=failure.fix, **failure.details) from failure
            task = self._minting[key] = asyncio.create_task(self._mint(key, scope, subject))
            task.add_done_callback(_look_at)
        return task

    def _find_stall(self) -> StorageUnavailable | None:
        stall, now_s = self._stall, self._clock.monotonic_s()
        if stall is None or now_s < stall.until_s:
            return None if stall is None else stall.error
        # One goes and looks; the others are told what was true before until it is back.
        self._stall = _Stall(stall.error, now_s + self._timeout_s)
        return None

    async def _mint(self, key: _Key, scope: Scope, subject: Subject) -> Vended:
        started_s = self._clock.monotonic_s()
        try:
            vended = await self._mint_in_time(scope, subject)
        except (StorageRefused, StorageUnavailable) as error:
            is_refused = isinstance(error, StorageRefused)
            took_s = self._clock.monotonic_s() - started_s
            MINTED.inc(storage=self._kind, outcome="refused" if is_refused else "unavailable")
            self._failed.put(key, error, _REFUSED_US if is_refused else _UNAVAILABLE_US)
            self._note_stall(error if isinstance(error, StorageUnavailable) else None, took_s)
            raise
        finally:
            del self._minting[key]
        self._stall = None
        MINTED.inc(storage=self._kind, outcome="ok")
        # The store's own log knows the session; this one knows whose it is and what for.
        _log.event(
            "credentials.minted",
            holder=subject.principal,
            catalog=subject.catalog,
            table=subject.table,
            is_writable=scope.is_writable,
            locations=[each.text for each in scope.locations],
            expires_ms=vended.expires_ms,
        )
        MINT_SECONDS.observe(self._clock.monotonic_s() - started_s, storage=self._kind)
        life_ms = vended.expires_ms - vended.issued_ms
        unwanted_ms = self._min_remaining * life_ms
        self._kept.put(
            key,
            vended,
            round((life_ms - unwanted_ms) * 1000),
            until_us=round((vended.expires_ms - unwanted_ms) * 1000),
        )
        return vended

    def _note_stall(self, error: StorageUnavailable | None, took_s: float) -> None:
        if error is None or took_s < _STALLED_S:
            # It answered, be it a refusal, or failed at once.
            self._stall = None
        else:
            pause_s = min(took_s, _LONGEST_PAUSE_S)
            self._stall = _Stall(error, self._clock.monotonic_s() + pause_s)

    async def _mint_in_time(self, scope: Scope, subject: Subject) -> Vended:
        try:
            async with asyncio.timeout(self._timeout_s), self._turns:
                return await self._vendor.mint(scope, subject)
        except TimeoutError as error:
            raise StorageUnavailable(
                "No credentials could be had in time",
                fix="Try again; if it lasts, check the token service of the catalog's storage.",
            ) from error


def _key(scope: Scope, subject: Subject) -> _Key:
    # Texts, because equal places may be spelled differently and clients compare the spelling; and because
    # the hash of a text is remembered, so that this costs a microsecond on the path of every load.
    return (
        scope.is_writable,
        subject.principal_id,
        subject.realm,
        subject.principal,
        subject.catalog,
        subject.table,
        *[each.text for each in scope.locations],
    )


def _look_at(task: asyncio.Task[Vended]) -> None:
    # Whoever waited may have given up; a failure that nobody looked at would be reported as a mistake.
    if not task.cancelled():
        task.exception()
