"""A table whose files are old, unless a test says otherwise."""

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from tests.delegation.purge.conftest import on_s3
from tests.delegation.purge.world import World

__all__ = ["on_s3"]

DAY_US = 86_400_000_000


class ShiftedClock(SystemClock):
    """A storage whose clock a test sets."""

    def __init__(self) -> None:
        self.shift_us = -10 * DAY_US

    def now_us(self) -> int:
        return super().now_us() + self.shift_us


class AgedWorld(World):
    """What is written is ten days old, unless `age` says otherwise."""

    storage_clock: ShiftedClock

    def age(self, days: float) -> None:
        self.storage_clock.shift_us = -round(days * DAY_US)


def make_world(seed: int = 1, **properties: str) -> AgedWorld:
    clock = ShiftedClock()
    files = MemoryFileIO([Location.parse("s3://bkt")], clock)
    world = AgedWorld(
        files,
        "s3://bkt/lake/t",
        seed=seed,
        properties={"dryRun": "false"} | properties,
        task_type=TaskType.ORPHAN_FILE_REMOVAL,
    )
    world.storage_clock = clock
    return world


@pytest.fixture
def aged() -> AgedWorld:
    return make_world()
