"""The client of gateways: what is sent again is the same statement, and whoever asks for Arrow gets it."""

import random
from collections.abc import AsyncIterator, Callable

import httpx
import msgspec
import pyarrow as pa
import pytest

from cynosure.client.api import ApiClient
from cynosure.client.http import HttpClient
from cynosure.client.query import ArrowPage, Page, QueryApi, QuerySession, StatementState
from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, CynosureError, NotFound
from cynosure.query.errors import NoSuchRelation, QueryFailed, SqlError
from cynosure.testing.scripted_statements import TOKEN, Script, ScriptedStatements, make_query_service

pytestmark = pytest.mark.anyio


class Flaky(httpx.AsyncBaseTransport):
    """Loses answers that a test wants lost."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.loses: list[Callable[[httpx.Request], bool]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        if self.loses and self.loses[0](request):
            self.loses.pop(0)
            raise httpx.ReadError("lost")
        return answer


@pytest.fixture
def statements() -> ScriptedStatements:
    return ScriptedStatements()


@pytest.fixture
def network(statements: ScriptedStatements) -> Flaky:
    return Flaky(httpx.ASGITransport(make_query_service(statements).app))


@pytest.fixture
async def query(network: Flaky) -> AsyncIterator[QueryApi]:
    headers = {"Authorization": f"Bearer {TOKEN}ann"}
    async with HttpClient(
        "http://test", clock=SystemClock(), rng=random.Random(1), transport=network, headers=headers
    ) as http:
        yield QueryApi(ApiClient(http))


async def test_a_statement_whose_answer_was_lost_runs_once(
    query: QueryApi, statements: ScriptedStatements, network: Flaky
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}), pa.table({"a": [2]}))
    network.loses = [lambda request: request.method == "POST"] * 2

    sent = await query.submit("SELECT 1", QuerySession("lake", ("a", "b"), {"x": 1}, "30s"))

    assert [each.sql for each in statements.requests] == ["SELECT 1"]
    assert (statements.requests[0].namespace, statements.requests[0].parameters) == (("a", "b"), {"x": 1})
    assert (sent.state, sent.has_ended, sent.progress.bytes_total) == ("FINISHED", True, 2000)
    assert [each.id for each in await query.list_own()] == [sent.id]
    first = await query.fetch(sent.results)
    assert isinstance(first, Page)
    network.loses = [lambda request: request.url.path.endswith("/2")]
    last = await query.fetch(first.next or "")
    assert isinstance(last, Page)
    assert (first.rows, last.rows, last.next) == ([[1]], [[2]], None)


async def test_pages_as_arrow_lead_to_the_next(query: QueryApi, statements: ScriptedStatements) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}), pa.table({"a": [2]}))
    sent = await query.submit("SELECT 1", QuerySession())

    first = await query.fetch_arrow(sent.results)
    assert isinstance(first, ArrowPage)
    last = await query.fetch_arrow(first.next or "")

    assert isinstance(last, ArrowPage)
    assert pa.ipc.open_stream(last.stream).read_all().to_pydict() == {"a": [2]}
    assert last.next is None


async def test_what_runs_is_told_as_it_is_until_it_is_ended(
    query: QueryApi, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    statements.scripts["SELECT 1"].is_held = True
    sent = await query.submit("SELECT 1", QuerySession())

    found = await query.fetch(sent.results, wait_s=0.01)
    as_arrow = await query.fetch_arrow(sent.results, wait_s=0.01)
    ended = await query.cancel(sent.id)

    assert isinstance(found, StatementState)
    assert isinstance(as_arrow, StatementState)
    assert (found.state, ended.state, (await query.load(sent.id)).state) == (
        "RUNNING",
        "CANCELED",
        "CANCELED",
    )


@pytest.mark.parametrize(
    ("error", "kind", "details"),
    [
        (SqlError("No", fix="So.", line=3, column=4), BadInput, {"line": 3, "column": 4, "field": "sql"}),
        (NoSuchRelation("None", line=1, column=2), NotFound, {"line": 1, "column": 2}),
        (QueryFailed("Zero", condition="DIVIDE_BY_ZERO"), CynosureError, {"condition": "DIVIDE_BY_ZERO"}),
    ],
)
async def test_errors_say_what_the_gateway_said(
    query: QueryApi,
    statements: ScriptedStatements,
    error: CynosureError,
    kind: type[CynosureError],
    details: dict[str, object],
) -> None:
    statements.scripts["SELECT 1"] = Script(error=error)
    sent = await query.submit("SELECT 1", QuerySession())

    with pytest.raises(kind) as caught:
        await query.fetch(sent.results)

    assert (caught.value.message, caught.value.fix) == (error.message, error.fix)
    assert caught.value.details.items() >= details.items()
    assert msgspec.json.encode(sent.error) == msgspec.json.encode((await query.load(sent.id)).error)
