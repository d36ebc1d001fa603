"""A storage that is too busy is asked again, and not for ever."""

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError, LeaseLost
from cynosure.delegation.jobs.live_files.patient import TRIES, PatientFileIO
from cynosure.delegation.jobs.port import JobPostponed
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import collect
from tests.delegation.purge.world import FastClock

BASE = Location.parse("s3://bkt/base")


class Busy(MemoryFileIO):
    """Fails so many times before it answers."""

    failures = 0
    error: type[CynosureError] = StorageUnavailable

    def fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.error("The storage does not answer or fails", code="AccessDenied", status=403)

    async def read(self, location, **options):
        self.fail()
        return await super().read(location, **options)

    async def list(self, prefix):
        self.fail()
        async for each in super().list(prefix):
            yield each


@pytest.fixture
def busy() -> Busy:
    return Busy([BASE], SystemClock())


@pytest.mark.anyio
async def test_it_asks_again_as_often_as_it_may(busy: Busy) -> None:
    files = PatientFileIO(busy, FastClock())
    await files.write(BASE.child("a"), b"1")

    busy.failures = TRIES - 1
    assert await files.read(BASE.child("a")) == b"1"
    busy.failures = TRIES - 1
    assert [each.location for each in await collect(files, BASE)] == [BASE.child("a")]
    busy.failures = TRIES
    with pytest.raises(StorageUnavailable):
        await files.read(BASE.child("a"))


@pytest.mark.anyio
async def test_a_storage_that_refuses_to_the_end_postpones_the_task(busy: Busy) -> None:
    busy.failures, busy.error = TRIES, StorageRefused

    with pytest.raises(JobPostponed) as postponed:
        await PatientFileIO(busy, FastClock()).read(BASE.child("a"))

    assert postponed.value.code == "STORAGE_REFUSED"
    assert postponed.value.details["storage_code"] == "AccessDenied"


@pytest.mark.anyio
async def test_every_try_of_a_change_looks_at_the_lease_first(busy: Busy) -> None:
    """I94."""
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise LeaseLost("This process no longer has the task it works on")

    class Changing(Busy):
        async def write(self, location, data, **options):
            self.fail()
            await super().write(location, data, **options)

    changing = Changing([BASE], SystemClock())
    changing.failures = TRIES
    with pytest.raises(LeaseLost):
        await PatientFileIO(changing, FastClock(), check).write(BASE.child("a"), b"1")

    assert looks == 3
    assert changing.failures == TRIES - 2
