"""Changing a task when answers of the store get lost.

Must not break: an unknown outcome is found out, never guessed. The very same change is asked for again, which
cannot be applied twice, until the store says that it holds or that it never can.
"""

import itertools
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import LeaseLost, OutcomeUnknown, Unavailable
from cynosure.delegation.store.port import TaskStore
from cynosure.delegation.task_record import TaskRecord

T = TypeVar("T")
_TRIES: Final = 5
_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 5.0


async def repeat(clock: Clock, ask: Callable[[], Awaitable[T]], *, tries: int | None = _TRIES) -> T:
    """Ask again while the store does not answer. Only for questions that may be asked twice.

    Without `tries`, until it answers: for whoever is cancelled when there is no point any more.
    """
    pause_s = _PAUSE_S
    for attempt in itertools.count(1):
        try:
            return await ask()
        except LeaseLost:
            raise
        except (Unavailable, OutcomeUnknown):
            if attempt == tries:
                raise
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
    raise AssertionError("counting ends never")


async def swap_settled(
    store: TaskStore, clock: Clock, expected: TaskRecord, wanted: TaskRecord, *, tries: int | None = _TRIES
) -> TaskRecord | None:
    """`TaskStore.swap` whose outcome is certain; `None` when another change was first.

    `Unavailable` or `OutcomeUnknown` when the store does not answer for too long.
    """
    may_be_applied = False

    async def ask() -> TaskRecord | None:
        nonlocal may_be_applied
        try:
            swapped = await store.swap(expected, wanted)
        except OutcomeUnknown:
            may_be_applied = True
            raise
        except Unavailable as error:
            if may_be_applied:
                # This time nothing was applied; but the first time is still open.
                raise OutcomeUnknown(
                    "It is not known whether a task was changed",
                    task=expected.task_id,
                    fix="Look at the task.",
                ) from error
            raise
        if swapped is None and may_be_applied:
            return await _find_applied(store, expected, wanted)
        return swapped

    return await repeat(clock, ask, tries=tries)


async def _find_applied(store: TaskStore, expected: TaskRecord, wanted: TaskRecord) -> TaskRecord | None:
    """The version that an earlier attempt of ours has made, if it was ours that came next."""
    for each in await store.history(expected.task_id):
        if each.version == expected.version + 1:
            return each if _mark(each) == _mark(wanted) else None
    return None


def _mark(record: TaskRecord) -> TaskRecord:
    """What tells two changes of one version apart. Tokens and versions are the store's own."""
    return replace(record, version=0, lease_token="")
