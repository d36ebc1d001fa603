"""Purges in the catalog's own process: real tables, real files, real stores; several servers on one store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.purging.purge import begin_purge, purge_table
from cynosure.catalog.task_executor import TaskExecutor, TaskQuery
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.settings import (
    DelegationSettings,
    LeaseSettings,
    RetriesSettings,
    RetrySettings,
    ServiceSettings,
    TaskSettings,
)
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import Conflict, NotFound
from cynosure.common.secrets import Secret
from cynosure.delegation.access_local import CatalogHere
from cynosure.delegation.executors.local import LocalTaskExecutor
from cynosure.delegation.executors.open import open_executor
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import S3Keys, S3Storage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog, open_directory_in
from cynosure.testing.small_delegation import make_order
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio
QUICK = DelegationSettings(
    service=ServiceSettings(polling=timedelta(milliseconds=50)),
    task=TaskSettings(lease=LeaseSettings(timedelta(seconds=60))),
    retry=RetriesSettings(table_purge=RetrySettings(10, timedelta(milliseconds=100))),
)


def not_delegated() -> object:
    raise AssertionError("no delegation service is asked for")


@asynccontextmanager
async def serving(directory: Directory, settings: DelegationSettings = QUICK) -> AsyncIterator[TaskExecutor]:
    async with open_executor(
        settings,
        directory,
        make_delegated=not_delegated,  # type: ignore[arg-type]
        rng=Random(3),
    ) as executor:
        directory.shared.use_executor(executor)
        yield executor


@pytest.fixture(params=["memory:", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    url: str = request.param
    return request.getfixturevalue("postgres_schema_url") if url == "postgres" else url


@pytest.fixture
async def directory(store_url: str, tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path, url=store_url, delegation=QUICK) as directory:
        yield directory


@pytest.fixture
async def lake(directory: Directory, tmp_path: Path) -> OpenCatalog:
    catalog = await make_catalog(directory, tmp_path)
    await create_namespace(catalog, ROOT, ("ns",), {})
    await make(catalog)
    return catalog


async def folder_of(lake: OpenCatalog, name: str = "t") -> Path:
    location: str = decoded(await load_table(lake, ROOT, T._replace(name=name)))["location"]
    return Path(location.removeprefix("file://"))


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def test_a_purge_ends_with_the_last_file_gone(
    directory: Directory, lake: OpenCatalog, tmp_path: Path
) -> None:
    stray = await folder_of(lake) / "data" / "stray.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    (tmp_path / "lake" / "beside.txt").write_bytes(b"not of the table")

    async with serving(directory) as executor:
        await purge_table(lake, ROOT, T)
        page = await executor.list(DEFAULT_REALM, TaskQuery())

    assert files_of(tmp_path / "lake") == {"beside.txt"}
    [task] = page.tasks
    assert (task.status, task.task_type) == (TaskStatus.SUCCESS, TaskType.TABLE_PURGE)
    assert task.execution_result.files_deleted >= 2
    with pytest.raises(NotFound):
        await load_table(lake, ROOT, T)


async def test_another_server_goes_on_with_what_one_has_left(
    directory: Directory, lake: OpenCatalog, tmp_path: Path
) -> None:
    """The first server has the task and dies without a word; the second one takes over."""
    async with serving(directory) as executor:
        assert isinstance(executor, LocalTaskExecutor)
        service = await executor._open(DEFAULT_REALM)
        _, worker = executor._realms[DEFAULT_REALM]
        await worker.close()
        purge = await begin_purge(lake, ROOT, T)
        now_us = SystemClock().now_us()
        lost = await service.context.store.lease("dead", now_us=now_us, lease_us=500_000)
        assert lost is not None

    async with (
        directory_on(directory.shared.persistence, tmp_path, delegation=QUICK) as other,
        serving(other) as executor,
    ):
        ended = await executor.wait(DEFAULT_REALM, purge.tombstone.task_id, 30)
        history = await executor.history(DEFAULT_REALM, purge.tombstone.task_id)

    assert ended is not None
    assert (ended.status, ended.attempt_count) == (TaskStatus.SUCCESS, 2)
    assert {each.worker for each in history} > {"dead"}
    assert files_of(tmp_path / "lake") == set()


async def test_servers_share_tasks_and_none_is_done_twice(
    directory: Directory, lake: OpenCatalog, tmp_path: Path
) -> None:
    names = [T._replace(name=f"t{number}") for number in range(6)]
    for name in names:
        await make(lake, name)
    async with directory_on(directory.shared.persistence, tmp_path, delegation=QUICK) as other:
        there = await other.open(DEFAULT_REALM, "lake")
        async with serving(directory) as first, serving(other):
            await asyncio.gather(
                *(purge_table(lake if n % 2 else there, ROOT, name) for n, name in enumerate(names))
            )
            tasks = (await first.list(DEFAULT_REALM, TaskQuery())).tasks

    assert [(each.status, each.attempt_count) for each in tasks] == [(TaskStatus.SUCCESS, 1)] * 6
    assert files_of(tmp_path / "lake") == files_of(await folder_of(lake))


@pytest.mark.parametrize(
    "method",
    ["expire_snapshots", "compact_data", "remove_orphan_files", "compact_metadata", "convert_format"],
)
async def test_other_kinds_need_a_service(tmp_path: Path, method: str) -> None:
    async with open_directory_in(tmp_path) as directory, serving(directory) as executor:
        with pytest.raises(Conflict) as refused:
            await getattr(executor, method)(make_order())

    assert "delegation service" in refused.value.message
    assert "delegation.endpoint" in refused.value.fix
    assert not executor.is_delegated


async def test_a_task_reaches_the_files_of_its_own_table_only(
    directory: Directory, lake: OpenCatalog, tmp_path: Path
) -> None:
    await make(lake, T._replace(name="neighbour"))
    outside = next((await folder_of(lake, "neighbour")).rglob("*.json"))
    order = make_order()
    table = await CatalogHere(directory, DEFAULT_REALM).open_table(order)

    inside = [info.location async for info in table.files.list(table.facts.places[0])]
    assert inside
    foreign = Location.parse(f"file://{outside}")
    files = table.files
    for touch in (
        lambda: files.read(foreign),
        lambda: files.delete(foreign),
        lambda: files.delete_many([*inside, foreign]),
        lambda: files.write(foreign, b"x", overwrite=True),
        lambda: files.exists(foreign),
    ):
        with pytest.raises(StorageRefused):
            await touch()
    with pytest.raises(StorageRefused):
        table.files.list(Location.parse(f"file://{tmp_path}/lake"))

    assert outside.exists()
    assert [info.location async for info in table.files.list(table.facts.places[0])] == inside


async def test_the_facts_are_those_of_the_table(directory: Directory, lake: OpenCatalog) -> None:
    table = await CatalogHere(directory, DEFAULT_REALM).open_table(make_order())

    facts = table.facts
    assert facts.location == facts.metadata["location"] == facts.places[0].text
    assert facts.table_uuid == facts.metadata["table-uuid"]
    assert facts.metadata_location.startswith(facts.location)
    assert not facts.is_federated
    assert (await table.client_files()).properties == {}


async def test_a_purge_needs_no_credentials_but_those_of_the_server(
    plain_s3_server: S3Server, tmp_path: Path
) -> None:
    """An S3 server without a token service: nobody else could be given access."""
    base = plain_s3_server.fresh_location()
    storage = S3Storage(
        allowed_locations=(base,),
        endpoint=plain_s3_server.endpoint,
        region=plain_s3_server.region,
        path_style_access=True,
    )
    keys = S3Keys(plain_s3_server.access_key_id, Secret(plain_s3_server.secret_access_key))
    async with open_directory_in(tmp_path, delegation=QUICK) as directory:
        wanted = NewCatalog(name="lake", base_location=base, storage=storage, storage_keys=keys)
        await create_catalog(directory, ROOT, wanted)
        lake = await directory.open(DEFAULT_REALM, "lake")
        await create_namespace(lake, ROOT, ("ns",), {})
        own = Location.parse(decoded(await make(lake))["location"])
        beside = Location.parse(base).child("beside.txt")
        await lake.files.write(beside, b"not of the table")
        await asyncio.gather(
            *(lake.files.write(own.child("data", f"{number}.parquet"), b"12345") for number in range(200))
        )
        async with serving(directory) as executor:
            await purge_table(lake, ROOT, T)
            [task] = (await executor.list(DEFAULT_REALM, TaskQuery())).tasks
        left = [info.location async for info in lake.files.list(Location.parse(base))]
        await lake.files.delete(beside)

    assert left == [beside]
    assert task.execution_result.files_deleted == 201
    assert task.execution_result.bytes_deleted > 200 * 5


async def test_dropped_tables_that_can_be_restored_are_found_by_their_places(
    directory: Directory, lake: OpenCatalog
) -> None:
    await make(lake, T._replace(name="gone"))
    await make(lake, T._replace(name="elsewhere"))
    place = Location.parse(f"file://{await folder_of(lake, 'gone')}")
    await drop_table(lake, ROOT, T._replace(name="gone"))
    await drop_table(lake, ROOT, T._replace(name="elsewhere"))

    found = await CatalogHere(directory, DEFAULT_REALM).list_overlapping_dropped(make_order(), [place])

    assert [each.facts.location for each in found] == [place.text]
