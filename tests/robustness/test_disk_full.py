"""No room left for the database file: writes are refused or unclear, reads go on, nothing told is lost."""

import random
import resource
from pathlib import Path

import pytest

from cynosure.common.errors import Unavailable
from cynosure.testing.harness.processes import ManagedProcess
from cynosure.testing.storm.ledger import Done, Failed, Ledger, Seen, read_ledger
from cynosure.testing.storm.verify import verify_storm
from cynosure.testing.storm.writers import MAIN, Storm, open_storm, read_counts, write_some
from cynosure.testing.workload import Items

from .conftest import Storms

pytestmark = pytest.mark.anyio

PAYLOAD_BYTES = 20_000


async def test_a_full_file_refuses_writes_with_the_fix_and_serves_reads(
    tmp_path: Path, rng: random.Random
) -> None:
    """I2, I4."""
    url, path = f"sqlite:{tmp_path}/store.db", tmp_path / "ledger.jsonl"
    ledger, storm = Ledger(path), Storm("s", payload_bytes=PAYLOAD_BYTES)
    async with open_storm(url) as persistence:
        await write_some(persistence, ledger, storm, rng, 5)
    full_bytes = (tmp_path / "store.db").stat().st_size + 10 * PAYLOAD_BYTES

    async with open_storm(f"{url}?max_bytes={full_bytes}") as persistence:
        await write_some(persistence, ledger, storm, rng, 40)
        counts = await read_counts((await persistence.committer(MAIN).read()).state)
        with pytest.raises(Unavailable) as refused:
            await persistence.committer(MAIN).commit(
                Items(persistence.ids, payload=rng.randbytes(PAYLOAD_BYTES)).add("more")
            )
        assert await read_counts((await persistence.committer(MAIN).read()).state) == counts

    assert "disk is full" in refused.value.message
    assert "max_bytes" in refused.value.fix
    failed = [event for event in read_ledger(path) if isinstance(event, Failed)]
    assert {event.error for event in failed} == {"Unavailable"}
    # With room again, writing goes on.
    async with open_storm(url) as persistence:
        await write_some(persistence, ledger, storm, rng, 5)
        verdict = await verify_storm(persistence, read_ledger(path))
    assert verdict.problems == ()
    assert verdict.acknowledged == verdict.committed == 45 - len(failed) + 5


async def test_a_running_process_whose_disk_fails_goes_on_when_it_works_again(
    processes, tmp_path: Path, rng: random.Random
) -> None:
    """I1, I4."""
    storms = Storms(f"sqlite:{tmp_path}/store.db", processes, tmp_path)
    impatient = ("--set", "persistence.commit_deadline=300ms", "--payload-bytes", str(PAYLOAD_BYTES))
    process = await storms.start("storm", *impatient, seed=rng.getrandbits(32))
    await storms.wait_for("storm", 10, process)

    # The kernel refuses to let any file of the process grow: to SQLite, a disk that fails to write.
    grown = (tmp_path / "store.db-wal").stat().st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (grown + 64 * 1024, resource.RLIM_INFINITY))
    await process.wait_until(has(storms, Failed, 5))
    seen = count(storms, Seen)
    await process.wait_until(has(storms, Seen, seen + 3))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    await storms.wait_for("storm", 10, process)
    process.kill9()
    verdict = await storms.verify()
    assert verdict.problems == ()
    assert count(storms, Done) == verdict.acknowledged


def count(storms: Storms, kind: type) -> int:
    return sum(isinstance(event, kind) for event in storms.events())


def has(storms: Storms, kind: type, wanted: int):
    async def probe(_: ManagedProcess) -> bool:
        return count(storms, kind) >= wanted

    return probe
