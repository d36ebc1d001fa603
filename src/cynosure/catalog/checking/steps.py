"""The steps of a check, in order: each with what came of it, and how long it took.

Must not break: whatever a storage answers becomes the outcome of a step; only mistakes of our own escape.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError

Act = Callable[[], Awaitable[object]]
Outcome = Literal["ok", "failed", "skipped"]

STEP_S: Final = 20.0
"""Longest that one step may take."""
CHECK_S: Final = 40.0
"""No step begins later than this: a whole check, with what it cleans up, ends before its request would."""


class StorageStep(Struct, frozen=True, kw_only=True):
    """One thing that was tried."""

    name: str
    location: str
    outcome: Outcome
    duration_ms: int = 0
    message: str = ""
    """What went wrong, or why it was not tried."""
    fix: str = ""
    """What to do about it."""
    details: Mapping[str, str] = {}
    """What the storage said: its status, its code."""


class Finding(Exception):
    """The storage does something else than it must, without an error."""

    def __init__(self, message: str, *, fix: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.details = details


class Skipped(Exception):
    """There is nothing to try."""

    def __init__(self, reason: str, *, fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix


class Steps:
    """The steps of one check so far."""

    def __init__(self, clock: Clock, *, step_s: float = STEP_S) -> None:
        self._clock = clock
        self._step_s = step_s
        self._began_s = clock.monotonic_s()
        self.done: list[StorageStep] = []
        self.stopped_because = ""
        """Why nothing more is tried anywhere; empty while there is hope."""

    async def run(self, name: str, location: str, act: Act) -> StorageStep:
        """Try something. It may raise `Finding` and `Skipped` besides errors of the storage."""
        if self.stopped_because:
            return self.skip(name, location, self.stopped_because)
        if self._clock.monotonic_s() - self._began_s > CHECK_S:
            return self.skip(name, location, "The steps before it took too long")
        step = await self._try(name, location, act)
        self.done.append(step)
        return step

    async def clean_up(self, location: str, act: Act) -> None:
        """Try something whatever came before; it is a step only if it fails."""
        step = await self._try("clean-up", location, act)
        if step.outcome == "failed":
            self.done.append(step)

    def skip(self, name: str, location: str, reason: str) -> StorageStep:
        """Say why something is not tried."""
        step = StorageStep(name=name, location=location, outcome="skipped", message=reason)
        self.done.append(step)
        return step

    async def _try(self, name: str, location: str, act: Act) -> StorageStep:
        began_s = self._clock.monotonic_s()
        outcome: Outcome = "failed"
        message, fix, details = "", "", dict[str, Any]()
        try:
            async with asyncio.timeout(self._step_s):
                await act()
            outcome = "ok"
        except Skipped as skipped:
            outcome, message, fix = "skipped", skipped.reason, skipped.fix
        except (CynosureError, Finding) as error:
            message, fix, details = error.message, error.fix, error.details
        except TimeoutError:
            message, fix = "The storage took too long", "Check the storage and the way to it."
        return StorageStep(
            name=name,
            location=location,
            outcome=outcome,
            duration_ms=round((self._clock.monotonic_s() - began_s) * 1000),
            message=message,
            fix=fix,
            # The location is the step's, or a file of ours below it.
            details={
                key: str(value)
                for key, value in details.items()
                if key != "location" and value not in ("", None)
            },
        )
