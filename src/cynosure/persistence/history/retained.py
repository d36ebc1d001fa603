"""Earlier states that are safe to build on.

Garbage collection keeps every state that was current within the retention, and may be deleting older ones
right now. So nothing may start to rely on a state that is about to leave the retained history.

Must not break: what counts is when a commit was *replaced*, not when it was made. The last commit before
a quiet month is the state of that whole month.
"""

from datetime import timedelta
from typing import NamedTuple

from cynosure.common.clock import Clock
from cynosure.common.errors import Expired
from cynosure.persistence.commit.view import State
from cynosure.persistence.history.log import find_in_log
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store

_SAFETY = timedelta(hours=1)
"""How long before the end of retention a commit is refused already, for clocks that differ."""


def kept_for(retention: timedelta) -> timedelta:
    """How long after it was replaced a state may still be built on."""
    return retention - min(_SAFETY, retention / 10)


class Retained(NamedTuple):
    """An earlier state, and how long it is certainly kept."""

    state: State
    until_us: int

    def ensure(self, clock: Clock) -> None:
        """Refuse a state that may be collected while it is used."""
        if clock.now_us() >= self.until_us:
            raise Expired(
                "That commit is about to leave the retained history",
                fix="Choose a later commit, or raise persistence.gc.history_retention for the future.",
                commit=self.state.commit_id,
            )


async def load_retained(
    store: Store, head: ObjId, commit_id: ObjId, *, clock: Clock, retention: timedelta
) -> Retained:
    """A state of the chain below `head`. `NotFound` when it is not in it, `Expired` when not for long."""
    # Order: the clock before the chain; a head that is replaced meanwhile counts from now at the earliest.
    now_us = clock.now_us()
    state, replaced_us = await find_in_log(store, head, commit_id)
    kept = retention - min(_SAFETY, retention / 10)
    since_us = now_us if replaced_us is None else replaced_us
    retained = Retained(state, since_us + int(kept.total_seconds() * 1_000_000))
    retained.ensure(clock)
    return retained
