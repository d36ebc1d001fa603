"""`cynosure store …` without a server, and the same through a running one."""

import json
from pathlib import Path

import pytest

from cynosure.common.errors import BadInput, NotFound
from cynosure.common.progress import Progress
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, ensure_reference, target_of
from cynosure.persistence.spi import CatalogId, RefKey
from cynosure.server.store_commands import (
    CheckReport,
    DiffLine,
    GcParams,
    InitParams,
    LogLine,
    ResetParams,
    RestoreParams,
    StatusParams,
    StoreStatus,
    Summary,
    TargetParams,
    parse_target,
    store_commands,
)
from cynosure.testing.workload import Items

pytestmark = pytest.mark.anyio
MAIN = catalog_reference(DEFAULT_REALM, CatalogId("c"), "main")
TARGET = target_of(MAIN)


async def fill(persistence: Persistence, names: int) -> list[int]:
    await ensure_reference(persistence.backend, MAIN, persistence.clock)
    items = Items(persistence.ids, principal="alice")
    committer = persistence.committer(MAIN)
    return [(await committer.commit(items.create(f"t{number}"))).commit_id for number in range(names)]


class Operator:
    """Runs commands on one store, in process."""

    def __init__(self, url: str) -> None:
        self.progress: list[Progress] = []
        self._commands = {
            command.name: command
            for command in store_commands(lambda initialise: open_persistence(url, initialise=initialise))
        }

    async def run(self, name: str, params: object) -> object:
        return await self._commands[name].run(params, self.progress.append)  # type: ignore[arg-type]


@pytest.fixture
async def operator(tmp_path: Path) -> Operator:
    url = f"sqlite:{tmp_path / 'store.db'}"
    async with open_persistence(url, initialise=True) as persistence:
        await fill(persistence, 5)
    return Operator(url)


async def test_status_lists_references_leases_and_tasks(operator: Operator) -> None:
    status = await operator.run("store.status", StatusParams(heads=True))

    assert isinstance(status, StoreStatus)
    main = next(ref for ref in status.references if ref.target == TARGET)
    assert main.sequence == 5
    assert [head.problems for head in main.recent] == [0, 0, 0, 0]
    assert len(status.leases) == 1


async def test_log_diff_and_restore_agree(operator: Operator) -> None:
    log = await operator.run("store.log", TargetParams(target=TARGET))
    assert isinstance(log, list)
    assert [line.sequence for line in log] == [5, 4, 3, 2, 1]
    assert isinstance(log[0], LogLine)
    assert log[0].requests == ["alice create"]
    second = str(log[3].id)

    diff = await operator.run("store.diff", TargetParams(target=TARGET, before=second, limit=100))
    assert isinstance(diff, list)
    names = [line.key for line in diff if isinstance(line, DiffLine) and line.index == "names"]
    assert names == ["t2", "t3", "t4"]

    done = await operator.run("store.restore", RestoreParams(target=TARGET, to=second))
    assert isinstance(done, Summary)
    assert done.text.startswith("9 entries restored")
    assert await operator.run("store.diff", TargetParams(target=TARGET, before=second, limit=100)) == []


async def test_a_point_in_time_is_a_commit_too(operator: Operator) -> None:
    log = await operator.run("store.log", TargetParams(target=TARGET))
    third = log[2]  # type: ignore[index]

    found = await operator.run("store.log", TargetParams(target=TARGET, after=third.time[:-6] + "+00:00"))

    # The log shows milliseconds and a commit's time has microseconds, so it may be an earlier one, or none:
    # then all in between were made in the same millisecond.
    newest = found[0].sequence if found else 0  # type: ignore[index]
    between = [line.time for line in log if newest < line.sequence <= third.sequence]  # type: ignore[attr-defined]
    assert newest <= third.sequence
    assert set(between) <= {third.time}


async def test_collection_and_check_report_what_they_did(operator: Operator) -> None:
    dry = await operator.run("store.gc", GcParams(dry_run=True))
    done = await operator.run("store.gc", GcParams())
    reports = await operator.run("store.check", InitParams())

    assert "would delete 0" in dry.text  # type: ignore[attr-defined]
    assert "deleted 0" in done.text  # type: ignore[attr-defined]
    assert all(isinstance(report, CheckReport) and not report.problems for report in reports)  # type: ignore[attr-defined]
    assert any(progress.message.startswith("checking") for progress in operator.progress)


async def test_a_reset_needs_a_recent_head(operator: Operator) -> None:
    log = await operator.run("store.log", TargetParams(target=TARGET))
    older = log[1].id  # type: ignore[index]

    done = await operator.run("store.reset", ResetParams(target=TARGET, head=older))

    assert f"at commit {older} again" in done.text  # type: ignore[attr-defined]
    with pytest.raises(BadInput):
        await operator.run("store.reset", ResetParams(target=TARGET, head=12))


@pytest.mark.parametrize(
    ("params", "error", "named"),
    [
        (TargetParams(target="main"), BadInput, "target"),
        (TargetParams(target="default/nonsense"), BadInput, "target"),
        (TargetParams(target="default//main"), BadInput, "target"),
        (TargetParams(target="elsewhere/catalogs"), NotFound, "elsewhere"),
        (TargetParams(target=TARGET, after="yesterday"), BadInput, "yesterday"),
        (TargetParams(target=TARGET, after="12345"), NotFound, "12345"),
        (TargetParams(target=TARGET, limit=0), BadInput, "limit"),
    ],
)
async def test_what_cannot_be_understood_is_named_with_its_fix(
    operator: Operator, params: TargetParams, error: type[Exception], named: str
) -> None:
    """I2."""
    with pytest.raises(error, match=named) as caught:
        await operator.run("store.log", params)
    assert caught.value.fix  # type: ignore[attr-defined]


def test_targets_are_read_as_they_are_written() -> None:
    for key in (MAIN, RefKey(DEFAULT_REALM, CatalogId("_realm"), "catalogs")):
        assert parse_target(target_of(key)) == key


async def test_commands_do_the_same_through_the_server_and_without_it(serve, run_cli, tmp_path: Path) -> None:
    """I22."""
    served = await serve()
    data = str(served.data)
    async with open_persistence(f"sqlite:{served.data / 'store.db'}") as persistence:
        await fill(persistence, 3)
    through = await run_cli("store", "log", TARGET, "--data", data, "--json")
    checked = await run_cli("store", "check", "--data", data)
    await served.process.stop()
    without = await run_cli("store", "log", TARGET, "--data", data, "--json")

    assert through.returncode == without.returncode == checked.returncode == 0
    assert json.loads(through.stdout) == json.loads(without.stdout)
    assert [line["sequence"] for line in json.loads(through.stdout)] == [3, 2, 1]


async def test_a_store_that_is_not_there_is_not_created_by_looking(run_cli, tmp_path: Path) -> None:
    """I2."""
    looked = await run_cli("store", "status", "--data", str(tmp_path / "nothing"))

    assert looked.returncode == 1
    assert "There is no store here" in looked.stderr
    assert "cynosure store init" in looked.stderr
    assert not (tmp_path / "nothing").exists()


async def test_a_reset_asks_for_confirmation(run_cli, tmp_path: Path) -> None:
    refused = await run_cli("store", "reset", TARGET, "1", "--data", str(tmp_path))

    assert refused.returncode == 2
    assert "--yes" in refused.stderr
