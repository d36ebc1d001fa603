"""What only a Hive Metastore does: locks, records of others, its own errors."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import pytest
from hive_metastore.ttypes import LockComponent, LockRequest, ShowLocksRequest, UnlockRequest
from pyiceberg.catalog.hive import HiveCatalog

from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.errors import OutcomeUnknown
from cynosure.federation.errors import RemoteConflict, RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.pointers import Pointer, PointerCatalog
from cynosure.federation.remotes.hive import open_hive
from cynosure.federation.remotes.hive.client import HiveRefused
from cynosure.federation.remotes.hive.thrift import Fields
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, Hold, client_sends
from cynosure.testing.pointer_kit import COLUMNS, place
from tests.federation.remotes.pointers.corners import HASTY, HiveCorner, Proxies

pytestmark = [pytest.mark.anyio, pytest.mark.hive]


class Hurried(SystemClock):
    """Time that passes a hundred times as fast, for whoever waits."""

    def monotonic_s(self) -> float:
        return super().monotonic_s() * 100

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


class Patient(SystemClock):
    """Time that hardly passes: who waits does not give up, however busy this machine is."""

    def monotonic_s(self) -> float:
        return super().monotonic_s() / 100


@pytest.fixture
async def pointers(hive: HiveCorner) -> AsyncIterator[PointerCatalog]:
    opened = hive.open()
    yield opened
    await opened.close()


@pytest.fixture
async def patient(hive: HiveCorner) -> AsyncIterator[PointerCatalog]:
    opened = open_hive(hive.connection, hive.secrets, HASTY, Patient(), "near")
    yield opened
    await opened.close()


@pytest.fixture
async def table(pointers: PointerCatalog) -> Identifier:
    namespace = (f"hive_{uuid.uuid4().hex[:12]}",)
    await pointers.create_namespace(namespace, {})
    return Identifier(namespace, "orders")


def ask(hive: HiveCorner, question: Callable[..., object]) -> object:
    """With PyIceberg's client."""
    with HiveCatalog("far", uri=hive.connection.uri)._client as client:
        return question(client)


def list_locks(hive: HiveCorner, table: Identifier) -> list[int]:
    def show(client: object) -> list[int]:
        wanted = ShowLocksRequest(dbname=table.namespace[0], tablename=table.name)
        return [each.lockid for each in client.show_locks(wanted).locks]

    return ask(hive, show)


def lock(hive: HiveCorner, table: Identifier) -> int:
    component = LockComponent(
        type=3, level=2, dbname=table.namespace[0], tablename=table.name, isTransactional=True
    )
    request = LockRequest(component=[component], user="somebody", hostname="elsewhere")
    return ask(hive, lambda client: client.lock(request).lockid)


async def wait_for_locks(hive: HiveCorner, table: Identifier, count: int) -> None:
    for _ in range(400):
        if len(await asyncio.to_thread(list_locks, hive, table)) == count:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"there are never {count} locks")


async def wait_for_connections(proxy: FaultProxy, count: int) -> None:
    for _ in range(400):
        if proxy.open_connections == count:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"there are never {count} connections")


async def test_what_others_wrote_into_a_record_stays(hive: HiveCorner, table: Identifier):
    first, second = place("first"), place("second")
    theirs = {
        "table_type": "iceberg",
        "metadata_location": first.metadata_location,
        "owner.team": "blue",
        "current-snapshot-id": "17",
    }
    await asyncio.to_thread(hive.make_plain, table, **theirs)
    opened = hive.open()

    await opened.swap(table, await opened.find(table), second, {"id": "bigint", "more": "int"})
    await opened.close()

    def get(client: object) -> object:
        return client.get_table(table.namespace[0], table.name)

    record = await asyncio.to_thread(ask, hive, get)
    assert record.owner == "somebody"
    assert record.parameters["owner.team"] == "blue"
    assert record.parameters["metadata_location"] == second.metadata_location
    assert record.parameters["previous_metadata_location"] == first.metadata_location
    assert "current-snapshot-id" not in record.parameters
    assert [each.name for each in record.sd.cols] == ["id", "more"]
    assert "LazySimpleSerDe" in record.sd.serdeInfo.serializationLib


async def test_the_lock_is_given_back(pointers: PointerCatalog, hive: HiveCorner, table: Identifier):
    first = await pointers.create(table, place("first"), COLUMNS)
    await pointers.swap(table, first, place("second"), COLUMNS)
    with pytest.raises(RemoteConflict):
        await pointers.swap(table, first, place("third"), COLUMNS)

    assert await asyncio.to_thread(list_locks, hive, table) == []


async def test_a_lock_of_somebody_else_is_waited_for(
    pointers: PointerCatalog, patient: PointerCatalog, hive: HiveCorner, table: Identifier
):
    first, second = await pointers.create(table, place("first"), COLUMNS), place("second")
    held = await asyncio.to_thread(lock, hive, table)
    swapping = asyncio.create_task(patient.swap(table, first, second, COLUMNS))
    await wait_for_locks(hive, table, 2)
    assert (await pointers.find(table)).metadata_location == first.metadata_location

    await asyncio.to_thread(unlock, hive, held)
    await swapping

    assert (await pointers.find(table)).metadata_location == second.metadata_location


async def test_a_lock_that_is_never_given_back_is_a_conflict_and_ours_is_withdrawn(
    pointers: PointerCatalog, hive: HiveCorner, table: Identifier
):
    first = await pointers.create(table, place("first"), COLUMNS)
    held = await asyncio.to_thread(lock, hive, table)
    hurried = open_hive(hive.connection, hive.secrets, HASTY, Hurried(), "near")

    with pytest.raises(RemoteConflict):
        await hurried.swap(table, first, place("second"), COLUMNS)

    await hurried.close()
    assert await asyncio.to_thread(list_locks, hive, table) == [held]
    await asyncio.to_thread(unlock, hive, held)


async def test_a_swap_that_is_cancelled_while_it_waits_leaves_no_lock(
    pointers: PointerCatalog, patient: PointerCatalog, hive: HiveCorner, table: Identifier
):
    first = await pointers.create(table, place("first"), COLUMNS)
    held = await asyncio.to_thread(lock, hive, table)
    swapping = asyncio.create_task(patient.swap(table, first, place("second"), COLUMNS))
    await wait_for_locks(hive, table, 2)

    swapping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await swapping

    await wait_for_locks(hive, table, 1)
    await asyncio.to_thread(unlock, hive, held)


async def test_a_swap_that_is_cancelled_before_it_knows_of_its_lock_leaves_none(
    pointers: PointerCatalog, hive: HiveCorner, table: Identifier, fault_proxy: Proxies
):
    first = await pointers.create(table, place("first"), COLUMNS)
    proxy, answered = await fault_proxy(hive.connection.uri), asyncio.Event()
    proxy.add(Hold(answered), when=client_sends(b"\x00\x00\x00\x04lock"))
    distant = hive.open(proxy.url)
    swapping = asyncio.create_task(distant.swap(table, first, place("second"), COLUMNS))
    await wait_for_locks(hive, table, 1)

    swapping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await swapping
    answered.set()

    await wait_for_locks(hive, table, 0)
    await distant.close()


async def test_an_alteration_that_may_still_come_keeps_the_lock(
    pointers: PointerCatalog, hive: HiveCorner, table: Identifier, fault_proxy: Proxies
):
    first = await pointers.create(table, place("first"), COLUMNS)
    proxy = await fault_proxy(hive.connection.uri)
    proxy.add(CutRequest(after_bytes=40), when=client_sends(b"alter_table_with_environment_context"))
    distant = hive.open(proxy.url)

    with pytest.raises(OutcomeUnknown):
        await distant.swap(table, first, place("second"), COLUMNS)
    await distant.close()

    assert (await pointers.find(table)).metadata_location == first.metadata_location
    [held] = await asyncio.to_thread(list_locks, hive, table)
    await asyncio.to_thread(unlock, hive, held)


async def test_an_alteration_that_was_made_gives_the_lock_back_though_its_answer_is_lost(
    pointers: PointerCatalog, hive: HiveCorner, table: Identifier, fault_proxy: Proxies
):
    first, second = await pointers.create(table, place("first"), COLUMNS), place("second")
    proxy = await fault_proxy(hive.connection.uri)
    proxy.lose_answer_after(hive.swaps())
    distant = hive.open(proxy.url)

    with pytest.raises(OutcomeUnknown):
        await distant.swap(table, first, second, COLUMNS)
    await distant.close()

    assert (await pointers.find(table)).metadata_location == second.metadata_location
    assert await asyncio.to_thread(list_locks, hive, table) == []


@pytest.mark.parametrize("is_done", [True, False])
async def test_what_a_metastore_finds_modified_by_our_own_change_is_done(
    pointers: PointerCatalog, hive: HiveCorner, table: Identifier, is_done: bool
):
    """It repeats a transaction whose end it did not hear of, and then does not find what it expects."""
    first, second = await pointers.create(table, place("first"), COLUMNS), place("second")
    change = pointers._client.change

    async def repeat(method: str, arguments: Fields) -> object:
        if method != "alter_table_with_environment_context":
            return await change(method, arguments)
        if is_done:
            await change(method, arguments)
        raise HiveRefused("Meta", "The table has been modified. The parameter value for key ...")

    pointers._client.change = repeat
    if is_done:
        assert await pointers.swap(table, first, second, COLUMNS) == second
    else:
        with pytest.raises(RemoteConflict):
            await pointers.swap(table, first, second, COLUMNS)
    assert await asyncio.to_thread(list_locks, hive, table) == []


async def test_a_connection_that_is_in_use_when_all_are_closed_ends_with_its_request(
    hive: HiveCorner, table: Identifier, fault_proxy: Proxies
):
    proxy, answered = await fault_proxy(hive.connection.uri), asyncio.Event()
    distant = hive.open(proxy.url)
    proxy.add(Hold(answered), when=client_sends(b"get_database"))
    asking = asyncio.create_task(distant.load_namespace(table.namespace))
    await wait_for_connections(proxy, 1)

    await distant.close()
    assert not asking.done()
    answered.set()
    await asking

    await wait_for_connections(proxy, 0)


async def test_a_connection_that_the_server_closed_is_not_used_again(
    hive: HiveCorner, table: Identifier, fault_proxy: Proxies
):
    proxy = await fault_proxy(hive.connection.uri)
    distant = hive.open(proxy.url)
    await distant.load_namespace(table.namespace)
    assert proxy.open_connections == 1

    proxy.cut_all()

    await distant.load_namespace(table.namespace)
    await distant.create(table, place("first"), COLUMNS)
    await distant.close()


async def test_what_speaks_no_thrift_is_no_metastore():
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    corner = HiveCorner(f"thrift://127.0.0.1:{port}")
    opened = corner.open()

    with pytest.raises((RemoteMisbehaved, RemoteUnavailable)):
        await opened.find(Identifier(("sales",), "orders"))
    with pytest.raises((OutcomeUnknown, RemoteUnavailable)):
        await opened.create(Identifier(("sales",), "orders"), Pointer("s3://b/1.json"), COLUMNS)

    await opened.close()
    server.close()
    await server.wait_closed()


async def test_a_database_has_one_level(pointers: PointerCatalog, table: Identifier):
    assert (await pointers.list_namespaces(table.namespace, token=None, size=10)).names == ()
    with pytest.raises(NoSuchNamespace):
        await pointers.load_namespace((*table.namespace, "deeper"))
    with pytest.raises(NoSuchNamespace):
        await pointers.list_tables((*table.namespace, "deeper"), token=None, size=10)


def unlock(hive: HiveCorner, number: int) -> None:
    ask(hive, lambda client: client.unlock(UnlockRequest(lockid=number)))
