"""PyIceberg without any key reads and writes: with vended credentials, or with requests that we sign."""

import asyncio
import os
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table
from pyiceberg.types import StringType
from pyiceberg.utils.concurrent import ExecutorFactory

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, RestCatalog, ServedCatalog
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.engines.conftest import MakeLake
from tests.engines.poison import POISON
from tests.engines.pyiceberg_client import ARROW, SCHEMA, connect, read, rows
from tests.names import unique

WAYS = ["vended by seaweedfs", "vended by minio", "signed for no-sts"]
REFUSED = r"(?i)access.?denied|forbidden|sign request 403"
pytestmark = pytest.mark.s3


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def _one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every worker of PyIceberg 0.12 takes the signer from a client that all share, and puts its own there.

    What another worker sends in that moment goes out without a signature (apache/iceberg-python#3896).
    """
    with ThreadPoolExecutor(max_workers=1) as worker:
        monkeypatch.setattr(ExecutorFactory, "_instance", worker)
        monkeypatch.setattr(ExecutorFactory, "_instance_pid", os.getpid())
        yield


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def store(way: str) -> S3Server:
    return find_s3_servers()[way.rpartition(" ")[2]]


@pytest.fixture(scope="module")
def lake(make_lake: MakeLake, store: S3Server) -> ServedCatalog:
    return make_lake(store)


@pytest.fixture
def catalog(lake: ServedCatalog) -> Iterator[Catalog]:
    with connect(lake.to_rest()) as client:
        yield client


@pytest.fixture
def table(catalog: Catalog) -> Table:
    name = unique()
    catalog.create_namespace(name)
    return catalog.create_table((name, "t"), SCHEMA)


def test_rows_are_written_changed_and_read(lake: ServedCatalog, catalog: Catalog, table: Table):
    table.append(rows("Oslo", "Rome", "Lima"))
    table.delete(EqualTo("city", "Rome"))
    table.append(rows("Kyiv", first=7))
    table.upsert(rows("Bergen"))
    with table.update_schema() as change:
        change.add_column("note", StringType())

    with connect(lake.to_rest()) as another:
        assert read(another.load_table(table.name())) == [(1, "Bergen"), (3, "Lima"), (7, "Kyiv")]


def test_a_staged_table_is_written_before_it_exists(catalog: Catalog, table: Table):
    name = (table.name()[0], "staged")
    with catalog.create_table_transaction(name, SCHEMA) as staged:
        staged.append(rows("Oslo"))

    assert read(catalog.load_table(name)) == [(1, "Oslo")]


def test_a_file_of_several_parts_is_written_and_read(table: Table):
    count = 1_200_000
    noise = pa.Array.from_buffers(
        pa.int64(), count, [None, pa.py_buffer(random.Random(7).randbytes(8 * count))]
    )
    many = {"id": noise, "city": pa.nulls(count, pa.string()), "at": pa.nulls(count, pa.timestamp("us"))}
    table.append(pa.table(many, schema=ARROW))

    (written,) = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert written > 8 * 1024 * 1024
    assert table.scan(selected_fields=("id",)).to_arrow()["id"].combine_chunks() == noise


def test_the_client_has_no_key_of_the_stores_owner(way: str, store: S3Server, table: Table):
    config = table.io.properties
    # The run fails when one of them is found in anything that the server has written.
    for name in ("s3.secret-access-key", "s3.session-token"):
        words = re.findall(r"[A-Za-z0-9+/]{24,}", str(config.get(name, "")))
        for word in sorted(words, key=len)[-1:]:
            KNOWN.add(word, kind="a vended credential")

    assert store.secret_access_key not in map(str, config.values())
    assert config.get("s3.access-key-id") != store.access_key_id
    assert ("s3.session-token" in config) == way.startswith("vended")
    assert ("s3.signer" in config) == way.startswith("signed")


def test_one_who_may_read_cannot_write_even_past_the_catalog(
    catalog_server: CatalogServer, lake: ServedCatalog, table: Table
):
    table.append(rows("Oslo"))
    reader = unique("reader")

    async def create_reader() -> RestCatalog:
        async with catalog_server.client() as http:
            credential = await Admin(http).create_user(reader, lake.name, Grant("TABLE_READ_DATA"))
        return lake.to_rest(credential)

    with connect(asyncio.run(create_reader())) as client:
        seen = client.load_table(table.name())
        assert read(seen) == [(1, "Oslo")]

        with pytest.raises(ForbiddenError):
            seen.update_schema().add_column("note", StringType()).commit()
        with pytest.raises(Exception, match=REFUSED):
            seen.io.new_output(f"{table.location()}/data/mine").create().close()
        assert not table.io.new_input(f"{table.location()}/data/mine").exists()


def test_access_to_one_table_reaches_no_other(catalog: Catalog, table: Table):
    table.append(rows("Oslo"))
    other = catalog.create_table((table.name()[0], "t2"), SCHEMA)
    (theirs,) = [task.file.file_path for task in table.scan().plan_files()]

    with pytest.raises(Exception, match=REFUSED):
        other.io.new_input(theirs).open().read()


def test_a_store_that_turns_out_to_have_no_token_service_is_signed_for(
    make_lake: MakeLake, plain_s3_server: S3Server
):
    with connect(make_lake(plain_s3_server, stsUnavailable=False).to_rest()) as client:
        client.create_namespace("ns")
        client.create_table("ns.t", SCHEMA).append(rows("Oslo"))

        loaded = client.load_table("ns.t")
        assert read(loaded) == [(1, "Oslo")]
        assert "s3.signer" in loaded.io.properties


def test_a_client_may_ask_for_signatures_where_there_are_credentials(
    make_lake: MakeLake, sts_server: S3Server
):
    asking = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
    with connect(make_lake(sts_server).to_rest(), **asking) as client:
        client.create_namespace("ns")
        client.create_table("ns.t", SCHEMA).append(rows("Oslo", "Rome"))

        loaded = client.load_table("ns.t")
        assert read(loaded) == [(1, "Oslo"), (2, "Rome")]
        assert "s3.session-token" not in loaded.io.properties
