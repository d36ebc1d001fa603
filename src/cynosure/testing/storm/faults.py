"""A backend that kills or stops its own process at a chosen moment, and a clock that can be set.

Only this program uses them: production has no such hooks.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from cynosure.common.clock import SystemClock
from cynosure.persistence.spi import Backend, ConditionalWrite, Limits, ObjKey, Reference, Row

T = TypeVar("T")


class Faults(Struct, frozen=True):
    """What is to happen to this process."""

    kill_after_swap: float = 0.0
    """Chance of SIGKILL after a swap was applied and before anybody learns of it."""
    stop_before_swap: int = 0
    """SIGSTOP before this swap, counted from 1. Zero: never."""
    stop_before_delete: int = 0
    """SIGSTOP before this batch of a collection is deleted, counted from 1."""
    early_rows: bool = False
    """Write prepared objects before the swap, as on a database whose swap carries no rows."""


class SelfHarming:
    """A backend with faults. Everything else is the inner backend's."""

    def __init__(self, inner: Backend, faults: Faults, rng: Random) -> None:
        self._inner = inner
        self._faults = faults
        self._rng = rng
        self._swaps = 0
        self._deletes = 0
        self._writing = 0

    @property
    def limits(self) -> Limits:
        """See `Backend`."""
        limits = self._inner.limits
        return msgspec.structs.replace(limits, swap_carries_rows=False) if self._faults.early_rows else limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, rows: Sequence[Row]) -> None:
        """See `Backend`."""
        await self._counted(self._inner.write(rows))

    async def insert(self, row: Row) -> bool:
        """See `Backend`."""
        return await self._counted(self._inner.insert(row))

    async def swap(self, row: Row, expected_token: str) -> bool:
        """See `Backend`."""
        return await self._counted(self._inner.swap(row, expected_token))

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        """See `Backend`."""
        return await self._counted(self._inner.write_each(writes, is_relaxed=is_relaxed))

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        """See `Backend`."""
        self._swaps += 1
        if self._swaps == self._faults.stop_before_swap:
            await self._stop()
        won = await self._counted(self._inner.swap_ref(expected, updated, rows))
        if won and self._rng.random() < self._faults.kill_after_swap:
            os.kill(os.getpid(), signal.SIGKILL)
        return won

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        """See `Backend`."""
        self._deletes += 1
        if self._deletes == self._faults.stop_before_delete:
            await self._stop()
        await self._inner.delete(keys)

    async def _counted(self, write: Awaitable[T]) -> T:
        self._writing += 1
        try:
            return await write
        finally:
            self._writing -= 1

    async def _stop(self) -> None:
        # Not while another write is under way: SQLite's only lock would stay with the stopped process, and
        # then nobody can do anything that a test could look at.
        while self._writing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGSTOP)


class SettableClock(SystemClock):
    """The machine's clock, set back by SIGUSR1 and forward again by SIGUSR2, as an operator might do."""

    def __init__(self, step_s: float) -> None:
        self._step_us = round(step_s * 1_000_000)
        self._offset_us = 0
        signal.signal(signal.SIGUSR1, lambda *_: self._set(-self._step_us))
        signal.signal(signal.SIGUSR2, lambda *_: self._set(0))

    def now_us(self) -> int:
        """See `Clock`."""
        return super().now_us() + self._offset_us

    def _set(self, offset_us: int) -> None:
        self._offset_us = offset_us
