"""Whether an earlier state is safe to build on.

Garbage collection keeps commits younger than the retention and may be deleting older ones right now.
So nothing may start to rely on a commit that is about to leave the retained history.
"""

from datetime import timedelta

from cynosure.common.clock import Clock
from cynosure.common.errors import Expired
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.commit.view import State

_SAFETY = timedelta(hours=1)
"""How long before the end of retention a commit is refused already, for clocks that differ."""


def ensure_retained(state: State, clock: Clock, retention: timedelta) -> None:
    """Refuse a state that may be collected while it is used."""
    margin = min(_SAFETY, retention / 10)
    oldest_us = clock.now_us() - int((retention - margin).total_seconds() * 1_000_000)
    if state.commit_id != NO_COMMIT and state.commit.record.time_us < oldest_us:
        raise Expired(
            "That commit is about to leave the retained history",
            fix="Choose a later commit, or raise persistence.gc.history_retention for the future.",
            commit=state.commit_id,
        )
