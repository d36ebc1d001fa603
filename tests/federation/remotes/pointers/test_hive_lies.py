"""What a metastore may do to a client, and to all others of its catalog (I115, I117, I120)."""

import random
import struct
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.catalog.connection import Connection, ConnectionSecrets, Implicit
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remote import RemoteTable, Tag
from cynosure.federation.remotes.failures import NOT_UNDERSTOOD
from cynosure.federation.remotes.hive import open_hive
from cynosure.federation.remotes.hive.thrift import LIST, STRING, STRUCT, Value, text
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing.pointer_kit import COLUMNS, place
from cynosure.testing.remote_samples import Stage, plan_table, setting
from cynosure.testing.small_catalog import open_directory_in
from tests.federation.federated import make_federated
from tests.federation.remotes.pointers.lying_metastore import (
    FIRST,
    Lie,
    LyingMetastore,
    answering,
    failing,
    saying,
    silent,
)

pytestmark = pytest.mark.anyio

ORDERS = Identifier(("sales",), "orders")
SMALL = FederationSettings(answer_bytes=2**20, break_after=2, retries=0)


@pytest.fixture
async def metastore() -> AsyncIterator[LyingMetastore]:
    async with LyingMetastore() as server:
        yield server


@pytest.fixture
async def pointers(metastore: LyingMetastore) -> AsyncIterator[PointerCatalog]:
    connection = Connection(type="HIVE", uri=metastore.uri, authentication=Implicit())
    opened = open_hive(connection, ConnectionSecrets(), SMALL, SystemClock(), "near")
    yield opened
    await opened.close()


NO_LOCKS: dict[str, tuple[Lie, type[CynosureError]]] = {
    "a metastore that knows no locks": (failing, RemoteRefused),
    "a declared refusal": (answering({1: Value(STRUCT, {1: text("no such transaction")})}), RemoteRefused),
    "no result": (answering({}), RemoteMisbehaved),
    "another kind of result": (answering({0: text("acquired")}), RemoteMisbehaved),
    "a lock without a number": (answering({0: Value(STRUCT, {})}), RemoteMisbehaved),
    "another protocol": (lambda name, number: b"HTTP/1.1 400 Bad Request\r\n\r\n", RemoteMisbehaved),
    "no answer": (silent, RemoteUnavailable),
}


@pytest.mark.parametrize("name", NO_LOCKS)
async def test_without_a_lock_nothing_was_done(
    metastore: LyingMetastore, pointers: PointerCatalog, name: str
):
    lie, expected = NO_LOCKS[name]
    metastore.lies["lock"] = lie

    with pytest.raises(expected) as raised:
        await pointers.swap(ORDERS, FIRST, place("second"), COLUMNS)
    with pytest.raises(expected):
        await pointers.rename(ORDERS, Identifier(("sales",), "renamed"))

    assert type(raised.value) is expected
    # Not asked twice, which would be two locks.
    assert metastore.heard == ["lock", "lock"]


async def test_a_metastore_that_cannot_lock_says_what_it_lacks(
    metastore: LyingMetastore, pointers: PointerCatalog
):
    metastore.lies["lock"] = failing

    with pytest.raises(RemoteRefused) as raised:
        await pointers.swap(ORDERS, FIRST, place("second"), COLUMNS)

    assert raised.value.details["reason"] == NOT_UNDERSTOOD


async def test_a_metastore_that_cannot_lock_takes_no_commits_and_is_read_all_the_same(
    metastore: LyingMetastore, pointers: PointerCatalog, tmp_path: Path
):
    metastore.lies["lock"] = failing
    async with open_directory_in(tmp_path) as directory:
        catalog = await make_federated(directory, tmp_path)
        remote = PointerRemote(pointers, catalog, name="near")
        guarded = GuardedRemote("near", lambda: remote, SMALL, SystemClock(), random.Random(1))
        metadata = plan_table(Stage(remote, catalog.base.text), ORDERS).metadata
        change = setting(ORDERS, RemoteTable(metadata, Tag(FIRST.metadata_location)), color="red")
        for _ in range(3):
            with pytest.raises(RemoteRefused):
                await guarded.commit_table(change)
        await catalog.shared.background.close()

        assert guarded.health().breaker == "closed"
        assert await guarded.load_namespace(("sales",)) == {}
        assert list(tmp_path.rglob("*.metadata.json")) == []


@pytest.mark.parametrize("method", ["get_all_tables", "get_all_databases", "get_table_req"])
async def test_many_small_values_take_no_more_memory_than_an_answer_may(
    metastore: LyingMetastore, pointers: PointerCatalog, method: str
):
    count = 1_000_000
    metastore.lies[method] = saying(struct.pack("!bhbi", LIST, 0, STRUCT, count) + bytes(count + 1))
    ask = {
        "get_all_tables": lambda: pointers.list_tables(("sales",), token=None, size=10),
        "get_all_databases": lambda: pointers.list_namespaces((), token=None, size=10),
        "get_table_req": lambda: pointers.find(ORDERS),
    }[method]
    tracemalloc.start()
    try:
        with pytest.raises(RemoteMisbehaved):
            await ask()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The answer itself is a test's, up to three times.
    assert peak < 3 * count + 4 * SMALL.answer_bytes


async def test_a_whole_list_of_names_is_read(metastore: LyingMetastore, pointers: PointerCatalog):
    names = sorted(f"database_{number:05d}" for number in range(10_000))
    said = struct.pack("!bhbi", LIST, 0, STRING, len(names))
    said += b"".join(struct.pack("!i", len(each)) + each.encode() for each in names)
    metastore.lies["get_all_databases"] = saying(said + b"\0")

    assert (await pointers.list_namespaces((), token=None, size=len(names))).names == names


async def test_parameters_that_are_none_are_no_pointer(metastore: LyingMetastore, pointers: PointerCatalog):
    record = {1: text("orders"), 2: text("sales"), 9: Value(STRUCT, {1: text("table_type")})}
    metastore.lies["get_table_req"] = answering({0: Value(STRUCT, {1: Value(STRUCT, record)})})

    with pytest.raises(CynosureError) as raised:
        await pointers.swap(ORDERS, FIRST, place("second"), COLUMNS)

    assert not isinstance(raised.value, OutcomeUnknown)
