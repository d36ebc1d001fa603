"""Nothing is swapped after its deadline, wherever in the loop the time went. The simulator found this."""

import pytest

from cynosure.common.errors import Contended
from cynosure.persistence.commit import CommitLimits
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import CountingIds, SmallStore

pytestmark = pytest.mark.anyio


class StoppedIds(CountingIds):
    """The process is stopped while it builds the commit: time passes between two ids."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.stop_at = 0
        self.made = 0

    def next(self) -> ObjId:
        self.made += 1
        if self.made == self.stop_at:
            self._clock._pass_until(round((self._clock.monotonic_s() + 100.0) * 1_000_000))
        return super().next()


async def test_a_commit_that_is_built_too_late_is_not_swapped() -> None:
    """I9."""
    clock = ManualClock()
    small = SmallStore(clock)
    small.ids = StoppedIds(clock)
    small.items._ids = small.ids
    await small.setup()
    committer = small.committer(limits=CommitLimits(index=IndexLimits(), deadline_s=10.0))
    await committer.commit(small.items.create("a"))
    swaps = small.backend.swaps
    for stop_at in range(1, 4):
        small.ids.made, small.ids.stop_at = 0, stop_at
        with pytest.raises(Contended):
            await committer.commit(small.items.create(f"late-{stop_at}"))

    assert small.backend.swaps == swaps
    assert list(await small.counts()) == ["a"]
