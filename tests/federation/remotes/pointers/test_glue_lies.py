"""What a Glue may do to a client, and to all others of its catalog (I115, I120)."""

import random
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cynosure.catalog.connection import Connection, ConnectionSecrets, SigV4
from cynosure.catalog.errors import NamespaceNotEmpty
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.errors import NotIceberg, RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remotes.glue import open_glue
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing import lying_remote as lies
from cynosure.testing.lying_remote import Heard, Lie, LyingRemote
from cynosure.testing.small_catalog import open_directory_in
from tests.federation.federated import make_federated

pytestmark = pytest.mark.anyio

ORDERS = Identifier(("sales",), "orders")
MIB = 2**20
SETTINGS = FederationSettings(break_after=2, retries=0)
SECRETS = ConnectionSecrets(access_key_id=Secret("AKIDOFATEST"), secret_access_key=Secret("the-secret-key"))


@pytest.fixture
async def liar() -> AsyncIterator[LyingRemote]:
    async with LyingRemote() as server:
        yield server


@pytest.fixture
async def pointers(liar: LyingRemote) -> AsyncIterator[PointerCatalog]:
    authentication = SigV4(signing_region="eu-west-1")
    connection = Connection(type="GLUE", uri=liar.url, authentication=authentication)
    opened = open_glue(connection, SECRETS, SETTINGS, SystemClock(), "near")
    yield opened
    await opened.close()


@pytest.fixture
async def guarded(pointers: PointerCatalog, tmp_path: Path) -> AsyncIterator[GuardedRemote]:
    async with open_directory_in(tmp_path) as directory:
        remote = PointerRemote(pointers, await make_federated(directory, tmp_path), name="near")
        yield GuardedRemote("near", lambda: remote, SETTINGS, SystemClock(), random.Random(1))


def by_action(**answers: Lie) -> Lie:
    """Each action has a lie of its own."""

    async def tell(heard: Heard, writer: object) -> None:
        await answers[heard.headers["x-amz-target"].partition(".")[2]](heard, writer)

    return tell


LARGE: dict[str, tuple[Callable[[PointerCatalog], Awaitable[object]], int]] = {
    "tables": (lambda pointers: pointers.list_tables(("sales",), token=None, size=10), 16),
    "databases": (lambda pointers: pointers.list_namespaces((), token=None, size=10), 16),
    "a table": (lambda pointers: pointers.find(ORDERS), 4),
    "a database": (lambda pointers: pointers.load_namespace(("sales",)), 4),
}
"""What is decoded at once, and how many MiB of it."""


@pytest.mark.parametrize("name", LARGE)
async def test_what_is_decoded_at_once_is_smaller_than_an_answer_may_be(
    liar: LyingRemote, pointers: PointerCatalog, name: str
):
    ask, most = LARGE[name]
    liar.says("POST", "/", lies.huge((most + 1) * MIB))

    with pytest.raises(RemoteMisbehaved) as raised:
        await ask(pointers)

    assert SETTINGS.answer_bytes > 16 * MIB
    assert raised.value.details["problem"] == "too large"


SMALL: dict[str, tuple[str, bytes, bytes]] = {
    "no tables": ("tables", b'{"TableList":[[]', b"]}"),
    "what is beside tables": ("tables", b'{"Else":[[]', b"]}"),
    "what is in a table of a list": ("tables", b'{"TableList":[{"Name":"a","Columns":[[]', b"]}]}"),
    "what is in its parameters": ("tables", b'{"TableList":[{"Name":"a","Parameters":{"x":[[]', b"]}}]}"),
    "no databases": ("databases", b'{"DatabaseList":[[]', b"]}"),
    "what is in a database of a list": ("databases", b'{"DatabaseList":[{"Name":"a","Else":[[]', b"]}]}"),
    "what is in a table": ("a table", b'{"Table":{"Name":"orders","Else":[[]', b"]}}"),
    "what is in a database": ("a database", b'{"Database":{"Name":"sales","Else":[[]', b"]}}"),
}
"""What is asked for, and how an answer begins and ends that is full of empty lists."""


@pytest.mark.parametrize("name", SMALL)
async def test_many_small_values_take_no_more_memory_than_an_answer_may(
    liar: LyingRemote, pointers: PointerCatalog, name: str
):
    question, head, tail = SMALL[name]
    ask, most = LARGE[question]
    liar.says("POST", "/", lies.raw(head + b",[]" * ((most * MIB - 100) // 3) + tail))
    tracemalloc.start()
    try:
        with suppress(RemoteMisbehaved, NotIceberg):
            await ask(pointers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 128 * MIB


async def test_an_answer_that_is_nested_too_deeply_is_the_remotes_fault(
    liar: LyingRemote, pointers: PointerCatalog
):
    liar.says("POST", "/", lies.raw(b'{"Table":{"x":' + b"[" * 100_000))
    with pytest.raises(RemoteMisbehaved):
        await pointers.find(ORDERS)
    liar.says("POST", "/", lies.raw(b'{"__type":' + b"[" * 10_000, 400))
    with pytest.raises(RemoteMisbehaved):
        await pointers.find(ORDERS)


async def test_a_database_whose_first_page_is_empty_is_not_dropped_with_its_tables(
    liar: LyingRemote, pointers: PointerCatalog
):
    first = lies.answer({"TableList": [], "NextToken": "more"})
    database = lies.answer({"Database": {"Name": "sales"}})
    liar.says("POST", "/", by_action(GetDatabase=database, GetTables=first))

    with pytest.raises(NamespaceNotEmpty):
        await pointers.drop_namespace(("sales",))


@pytest.mark.parametrize(
    ("kind", "status"),
    [("ThrottlingException", 400), ("TooManyRequestsException", 429), ("RequestLimitExceeded", 400)],
)
async def test_who_asks_too_often_closes_the_catalog_to_nobody(
    liar: LyingRemote, guarded: GuardedRemote, kind: str, status: int
):
    patience = lies.answer({"__type": kind}, status)
    liar.says("POST", "/", patience)
    for _ in range(3):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_namespace(("sales",))
    database = lies.answer({"Database": {"Name": "sales"}})
    page = lies.answer({"TableList": []})
    liar.says("POST", "/", by_action(GetDatabase=database, GetTables=page, DeleteDatabase=patience))
    for _ in range(3):
        with pytest.raises(RemoteUnavailable):
            await guarded.drop_namespace(("sales",))

    assert guarded.health().breaker == "closed"
    assert await guarded.load_namespace(("sales",)) == {}


async def test_a_glue_that_answers_nobody_is_left_alone(liar: LyingRemote, guarded: GuardedRemote):
    liar.says("POST", "/", lies.raw(b"", 503))
    for _ in range(2):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_namespace(("sales",))

    assert guarded.health().breaker == "open"
