import asyncio
import logging
import random
from typing import Any

import pytest

from cynosure.api.messages import Request, Response
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.middleware.telemetry import IN_FLIGHT, REQUESTS, Telemetry
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route, Router
from cynosure.common.clock import SystemClock
from cynosure.common.errors import NotFound
from cynosure.common.telemetry.request_scope import current_scope

pytestmark = pytest.mark.anyio


async def show_scope(request: Request) -> Response:
    return Response.json({"scope": current_scope().request_id, "request": request.request_id})


async def missing(request: Request) -> Response:
    raise NotFound("No such table")


ROUTES = (
    Route("GET", "/t/{name}", show_scope, operation_id="loadTable"),
    Route("GET", "/missing", missing, operation_id="missing"),
    Route("POST", "/t/{name}", show_scope, operation_id="commitTable"),
    METRICS_ROUTE,
)


async def test_the_callers_request_id_is_echoed_and_reaches_handlers_and_logs(client_for) -> None:
    answer = await client_for(*ROUTES).get("/t/a", headers={"X-Request-ID": "abc-123"})

    assert answer.headers["x-request-id"] == "abc-123"
    assert answer.json() == {"scope": "abc-123", "request": "abc-123"}
    assert current_scope().request_id == ""


@pytest.mark.parametrize("insane", ["", "a b", "x" * 129, "a\tb"])
async def test_a_request_id_that_could_forge_something_is_replaced(client_for, insane: str) -> None:
    answer = await client_for(*ROUTES).get("/t/a", headers={"X-Request-ID": insane})

    assert answer.headers["x-request-id"] not in ("", insane)


async def test_errors_carry_the_request_id_too(client_for) -> None:
    answer = await client_for(*ROUTES).get("/nowhere", headers={"X-Request-ID": "abc"})

    assert (answer.status_code, answer.headers["x-request-id"]) == (404, "abc")


async def test_requests_are_counted_by_operation_and_never_by_path(client_for, metrics) -> None:
    client = client_for(*ROUTES)
    for path in ("/t/secret1", "/t/secret2", "/missing", "/nowhere"):
        await client.get(path)

    text = (await client.get("/metrics")).text

    assert 'cynosure_api_requests_total{operation="loadTable",status="200"} 2.0' in text
    assert 'cynosure_api_requests_total{operation="missing",status="404"} 1.0' in text
    assert 'cynosure_api_requests_total{operation="none",status="404"} 1.0' in text
    assert 'cynosure_api_request_seconds_count{operation="loadTable"} 2.0' in text
    assert "cynosure_api_requests_in_flight 1.0" in text, "this very request"
    assert "secret" not in text
    assert "nowhere" not in text


async def test_notable_requests_are_logged_and_cheap_reads_are_not(client_for, caplog) -> None:
    caplog.set_level(logging.INFO)
    client = client_for(*ROUTES)

    for method, path in (("GET", "/t/a"), ("POST", "/t/a"), ("GET", "/missing")):
        await client.request(method, path)

    told = [record.cynosure_fields for record in caplog.records if record.message == "request.answered"]
    assert [(fields["operation"], fields["status"]) for fields in told] == [
        ("commitTable", 200),
        ("missing", 404),
    ]
    assert told[0]["path"] == "/t/a"


async def call(app: Telemetry, path: bytes) -> None:
    async def nowhere(*_: Any) -> Any:
        return None

    scope = {"type": "http", "method": "GET", "raw_path": path, "query_string": b"", "headers": []}
    await app(scope, nowhere, nowhere)


async def test_what_was_counted_shows_to_other_workers_without_being_asked_for(metrics) -> None:
    working, may_end = asyncio.Event(), asyncio.Event()

    async def work(request: Request) -> Response:
        working.set()
        await may_end.wait()
        return Response()

    routes = [*ROUTES, Route("GET", "/work", work, operation_id="work")]
    app = Telemetry(Router(routes, OperatorGate()), SystemClock(), random.Random(1), publish_every_s=0)

    def shown() -> tuple[float, float]:
        counted = REQUESTS.series({"operation": "work", "status": "200"})
        return counted._value.get(), IN_FLIGHT.series({})._value.get()

    request = asyncio.create_task(call(app, b"/work"))
    await working.wait()
    await asyncio.sleep(0)
    during = shown()
    may_end.set()
    await request
    await asyncio.sleep(0)

    assert during == (0.0, 1.0)
    assert shown() == (1.0, 0.0)


async def test_a_request_that_is_cut_off_is_counted_as_such(client_for, metrics) -> None:
    async def leave(request: Request) -> Response:
        raise asyncio.CancelledError

    client = client_for(METRICS_ROUTE, Route("GET", "/leave", leave, operation_id="leave"))
    app = client._transport.app

    with pytest.raises(asyncio.CancelledError):
        await call(app, b"/leave")

    text = (await client.get("/metrics")).text
    assert 'cynosure_api_requests_total{operation="leave",status="0"} 1.0' in text
    assert "cynosure_api_requests_in_flight 1.0" in text, "this very request"
