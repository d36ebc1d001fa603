"""Appends through a real server: rows that others read, answers that are lost, what is refused (I90)."""

import asyncio
import os
import random
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType
from pyiceberg.utils.concurrent import ExecutorFactory

from cynosure.client import Appended, append
from cynosure.client.api import ApiClient
from cynosure.client.appends import AppendApi
from cynosure.client.errors import KeyConflict
from cynosure.client.http import HttpClient
from cynosure.client.idempotency import Keys
from cynosure.client.profiles import Profile, Profiles, profiles_path, write_profiles
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, Forbidden, Misconfigured, NotFound, OutcomeUnknown
from cynosure.common.secrets import Secret
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.faults import LoseAnswer, Request, Respond
from cynosure.testing.harness.http_proxy import HttpProxy, find_header, run_http_proxy
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.engines.pyiceberg_client import connect

GUIDE = Path(__file__).parents[3] / "docs/guides/append.md"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "at", TimestampType()),
    NestedField(4, "cost", DoubleType()),
)
PARTITIONED = PartitionSpec(
    PartitionField(3, 1000, DayTransform(), "day"), PartitionField(2, 1001, BucketTransform(4), "bucket")
)


def rows(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": list(ids),
            "city": [None if n % 7 == 0 else f"city {n % 5}" for n in ids],
            "at": pa.array([n * 10**10 for n in ids], pa.int64()).cast(pa.timestamp("us")),
            "cost": [float("nan") if n % 11 == 0 else n / 4 for n in ids],
        }
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory = tmp_path_factory.mktemp("append")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory))


@pytest.fixture(scope="module")
def lake(server: CatalogServer) -> ServedCatalog:
    return asyncio.run(server.create_catalog("lake"))


@pytest.fixture
def catalog(lake: ServedCatalog) -> Iterator[Catalog]:
    with connect(lake.to_rest()) as client:
        yield client


@pytest.fixture
def make_table(catalog: Catalog) -> Callable[..., Table]:
    def make(**options: Any) -> Table:
        name = f"n{uuid.uuid4().hex[:8]}"
        catalog.create_namespace(name)
        return catalog.create_table((name, "t"), SCHEMA, **options)

    return make


@pytest.fixture
def proxy(server: CatalogServer) -> Iterator[HttpProxy]:
    with run_http_proxy(server.url) as proxy:
        yield proxy


def profile(server: CatalogServer, url: str = "") -> Profile:
    credential = server.credential
    return Profile(url or server.url, client_id=credential.client_id, client_secret=credential.secret)


def add(server: CatalogServer, table: Table, data: Any, *, url: str = "", **options: Any) -> Appended:
    options = {"catalog": "lake", "server": profile(server, url), **options}
    return append(".".join(table.name()), data, **options)


def read(table: Table) -> list[tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().sort_by("id")
    return [tuple(map(repr, row.values())) for row in found.to_pylist()]


def plain(*tables: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(repr, row.values())) for row in pa.concat_tables(tables).sort_by("id").to_pylist()]


def data_files(server: CatalogServer, table: Table) -> list[Path]:
    place = Path(table.location().removeprefix("file://"))
    return sorted(place.rglob("*.parquet"))


@pytest.mark.parametrize("partitioning", [PartitionSpec(), PARTITIONED], ids=["plain", "partitioned"])
def test_rows_are_read_by_other_engines(
    server: CatalogServer, make_table: Callable[..., Table], partitioning: PartitionSpec
) -> None:
    table = make_table(partition_spec=partitioning)

    done = add(server, table, rows(100), summary={"batch": "7"})
    add(server, table, rows(50, first=100).to_reader(max_chunksize=7))

    assert read(table) == plain(rows(150))
    snapshot = table.snapshots()[0]
    assert (done.snapshot_id, done.added_records) == (snapshot.snapshot_id, 100)
    assert snapshot.summary["batch"] == "7"
    assert done.added_files == int(snapshot.summary["added-data-files"])
    files = [task.file.file_path for task in table.scan().plan_files()]
    assert sorted(files) == [f"file://{path}" for path in data_files(server, table)]
    counted = duckdb.sql(f"select count(*), sum(id), count(city) from read_parquet({files})").fetchall()
    assert counted == [(150, sum(range(150)), sum(1 for n in range(150) if n % 7))]


def test_pyiceberg_prunes_by_the_metrics(server: CatalogServer, make_table: Callable[..., Table]) -> None:
    table = make_table(partition_spec=PARTITIONED)
    for first in (0, 1000, 2000):
        add(server, table, rows(20, first=first))

    table.refresh()
    chosen = list(table.scan("id >= 2005").plan_files())
    assert 0 < len(chosen) < len(list(table.scan().plan_files()))
    assert table.scan("id >= 2005").to_arrow().num_rows == 15


def test_no_rows_are_no_snapshot(server: CatalogServer, make_table: Callable[..., Table]) -> None:
    table = make_table()

    done = add(server, table, rows(0))

    assert done == Appended(None, 0, 0)
    assert table.refresh().snapshots() == []


def list_parquet(s3: S3Server, place: str) -> list[str]:
    """All of them, as the owner of the store sees it."""
    root = f"s3://{s3.bucket}/"
    return sorted(f"{root}{path}" for path in s3.list_below(place) if path.endswith(".parquet"))


@pytest.mark.s3
@pytest.mark.parametrize("store", ["minio", "seaweedfs", "no-sts"])
def test_files_are_written_with_what_the_catalog_gives(
    server: CatalogServer, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing of this machine may be shown to the store.
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/wrong")
    # Each thread of PyIceberg takes the signer off the client that they share and puts its own there:
    # requests in between are sent without a signature, and refused.
    monkeypatch.setattr(ExecutorFactory, "_instance", ThreadPoolExecutor(max_workers=1))
    monkeypatch.setattr(ExecutorFactory, "_instance_pid", os.getpid())
    s3 = find_s3_servers()[store]
    place = s3.fresh_location("append")
    name = f"c{uuid.uuid4().hex[:8]}"
    made = asyncio.run(server.create_catalog_on(s3, name, location=place))
    try:
        with connect(made.to_rest()) as client:
            client.create_namespace("ns")
            table = client.create_table(("ns", "t"), SCHEMA, partition_spec=PARTITIONED)
            add(server, table, rows(60), catalog=name)
            # Before the other table: PyIceberg has requests of all tables signed for the one it opened last.
            assert read(table) == plain(rows(60))
            written = [task.file.file_path for task in table.scan().plan_files()]
            # Large enough that it goes in several parts.
            noise = pa.Array.from_buffers(
                pa.float64(), 800_000, [None, pa.py_buffer(random.Random(7).randbytes(6_400_000))]
            )
            big = client.create_table(("ns", "big"), SCHEMA)
            with pytest.raises((BadInput, NotFound)):
                add(server, big, rows(5), catalog=name, branch="")
            add(server, big, pa.table({"id": pa.array(range(800_000)), "cost": noise}), catalog=name)

            ids = big.refresh().scan(selected_fields=("id",)).to_arrow()["id"]
            assert ids.combine_chunks() == pa.array(range(800_000))
            written += [task.file.file_path for task in big.scan().plan_files()]
            assert list_parquet(s3, place) == sorted(written), "those of what was refused are gone"
            assert big.inspect.files()["file_size_in_bytes"].to_pylist()[0] > 5 * 2**20
    finally:
        s3.delete_below(place)


def is_append(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/append")


def test_a_lost_answer_does_not_append_twice(
    server: CatalogServer, make_table: Callable[..., Table], proxy: HttpProxy
) -> None:
    table = make_table()
    sent = proxy.record(is_append)
    proxy.add(LoseAnswer(), when=is_append, times=2)

    done = add(server, table, rows(30), url=proxy.url)

    assert len({find_header(request, "idempotency-key") for request in sent}) == 1
    assert len(sent) == 3
    assert [each.snapshot_id for each in table.refresh().snapshots()] == [done.snapshot_id]
    assert read(table) == plain(rows(30))


def test_the_same_rows_with_the_same_key_are_appended_once(
    server: CatalogServer, make_table: Callable[..., Table]
) -> None:
    table = make_table(partition_spec=PARTITIONED)

    first = add(server, table, rows(30), idempotency_key="load-17")
    again = add(server, table, rows(30), idempotency_key="load-17")
    with pytest.raises(KeyConflict):
        add(server, table, rows(31), idempotency_key="load-17")

    assert again == first
    assert read(table) == plain(rows(30)), "no file of the first one was deleted"


def test_files_stay_while_the_outcome_is_unknown(
    server: CatalogServer, make_table: Callable[..., Table], proxy: HttpProxy
) -> None:
    table = make_table()
    proxy.add(LoseAnswer(), when=is_append, times=None)

    async def impatient() -> None:
        clock = SystemClock()
        async with HttpClient(proxy.url, clock=clock, rng=random.Random(1)) as http:
            credential = server.credential
            tokens = TokenSource(
                http, ClientCredentials(credential.client_id, Secret(credential.secret)), clock, headers={}
            )
            api = ApiClient(http, tokens=tokens, keys=Keys(patience_s=0.5))
            await AppendApi(api, "lake").append(table.name()[:-1], table.name()[-1], rows(30))

    with pytest.raises(OutcomeUnknown) as unknown:
        asyncio.run(impatient())

    [path] = data_files(server, table)
    assert unknown.value.details["files"] == [f"file://{path}"]
    assert "files stay" in unknown.value.fix
    # The key that the error names has the answer.
    done = add(server, table, rows(30), idempotency_key=unknown.value.details["idempotency_key"])
    assert [each.snapshot_id for each in table.refresh().snapshots()] == [done.snapshot_id]
    assert read(table) == plain(rows(30))


def test_files_of_a_refused_append_are_removed(
    server: CatalogServer, make_table: Callable[..., Table]
) -> None:
    table = make_table()

    with pytest.raises((BadInput, NotFound)):
        add(server, table, rows(10), branch="")

    assert data_files(server, table) == []
    assert table.refresh().snapshots() == []


def test_a_lost_right_under_a_callers_key_deletes_nothing(
    server: CatalogServer, make_table: Callable[..., Table], proxy: HttpProxy
) -> None:
    """Another process may have appended these very files under the key, and only the answer 403 came here."""
    table = make_table()
    proxy.add(Respond(403), when=is_append, times=None)

    with pytest.raises(Forbidden):
        add(server, table, rows(5), url=proxy.url, idempotency_key="night-1")
    kept = data_files(server, table)
    with pytest.raises(Forbidden):
        add(server, table, rows(5), url=proxy.url)

    assert len(kept) == 1
    assert data_files(server, table) == kept


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (pa.table({"id": [1], "more": [2]}), "more"),
        (pa.table({"city": ["x"]}), "id"),
        (pa.table({"id": ["x"]}), "id"),
        ([1, 2], "data"),
    ],
)
def test_data_that_do_not_fit_write_nothing(
    server: CatalogServer, make_table: Callable[..., Table], data: Any, field: str
) -> None:
    table = make_table()

    with pytest.raises(BadInput) as refused:
        add(server, table, data)

    assert refused.value.field == field
    assert data_files(server, table) == []


def test_tables_and_servers_that_are_not_there_are_told(server: CatalogServer) -> None:
    there = profile(server)
    with pytest.raises(NotFound):
        append("nowhere.t", rows(1), catalog="lake", server=there)
    with pytest.raises(BadInput, match="name of a table"):
        append("t", rows(1), catalog="lake", server=there)
    with pytest.raises(Misconfigured, match="TLS"):
        append("a.t", rows(1), catalog="lake", server=Profile("http://catalog.example.org"))


def test_the_default_profile_is_used(
    server: CatalogServer, make_table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = make_table()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    where = profiles_path({"XDG_CONFIG_HOME": str(tmp_path)})
    write_profiles(where, Profiles({"here": profile(server)}, "here"))

    append(".".join(table.name()), rows(3), catalog="lake")

    assert read(table) == plain(rows(3))


def test_the_guide_does_what_it_says(server: CatalogServer, capsys: pytest.CaptureFixture[str]) -> None:
    made = asyncio.run(server.create_catalog(f"g{uuid.uuid4().hex[:8]}"))
    credential = server.credential
    with connect(made.to_rest()) as client:
        client.create_namespace("shop")
        columns = pa.schema([("id", pa.int64()), ("item", pa.string())])
        table = client.create_table("shop.orders", columns)
    names: dict[str, Any] = {}
    for program in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL):
        for documented, real in (
            ("http://127.0.0.1:8181", server.url),
            ("CLIENT_ID", credential.client_id),
            ("SECRET", credential.secret),
            ('"main"', f'"{made.name}"'),
        ):
            program = program.replace(documented, real)  # noqa: PLW2901
        exec(program, names)

    assert capsys.readouterr().out == "3 rows in 1 files\n"
    assert len(table.refresh().snapshots()) == 2
    assert table.scan().to_arrow().num_rows == 6


def test_without_pyarrow_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(Misconfigured, match=r"pip install 'cynosure\[append\]'"):
        append("a.t", None, catalog="lake", server=Profile("http://127.0.0.1:1"))
