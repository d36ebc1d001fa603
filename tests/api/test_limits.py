import asyncio
from typing import Any

import pytest
from msgspec import Struct

from cynosure.api.app import RequestLimits
from cynosure.api.messages import Request, Response
from cynosure.api.middleware.limits import Limits
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock

pytestmark = pytest.mark.anyio


class Body(Struct):
    text: str = ""


async def accept(request: Request) -> Response:
    return Response.json({"bytes": len(request.body.text)})


ROUTE = Route("POST", "/", accept, operation_id="accept", request=Body)
SMALL = RequestLimits(max_body_bytes=100, body_timeout_s=5)


async def test_a_body_at_the_limit_passes_and_one_byte_more_is_413(client_for) -> None:
    client = client_for(ROUTE, limits=SMALL)
    fitting = {"text": "x" * (100 - len('{"text":""}'))}

    assert (await client.post("/", json=fitting)).json() == {"bytes": 89}
    answer = await client.post("/", json={"text": fitting["text"] + "x"})

    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert "max_body_bytes=100" in answer.json()["error"]["message"]


async def test_a_body_that_grows_beyond_the_limit_while_it_arrives_is_413(client_for) -> None:
    async def chunks():
        for _ in range(1000):
            yield b" " * 50

    client = client_for(ROUTE, limits=SMALL)

    answer = await client.post("/", content=chunks(), headers={"content-type": "application/json"})

    assert answer.status_code == 413


@pytest.mark.parametrize(("length", "status"), [("-1", 400), ("x", 400), ("9" * 400, 413)])
async def test_an_absurd_length_is_refused(client_for, length: str, status: int) -> None:
    client = client_for(ROUTE, limits=SMALL)

    answer = await client.post("/", content=b"{}", headers={"content-length": length})

    assert answer.status_code == status


async def test_a_body_that_does_not_arrive_is_408(client_for) -> None:
    async def stuck():
        yield b"{"
        await asyncio.Event().wait()

    client = client_for(ROUTE, limits=RequestLimits(body_timeout_s=0.01))

    answer = await client.post("/", content=stuck(), headers={"content-type": "application/json"})

    assert answer.status_code == 408
    assert answer.json()["error"]["type"] == "RequestTimeoutException"


async def test_a_client_that_leaves_while_sending_ends_the_request_quietly(client_for) -> None:
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    app = client_for(ROUTE)._transport.app
    headers = [(b"transfer-encoding", b"chunked"), (b"content-type", b"application/json")]
    await app(
        {"type": "http", "method": "POST", "raw_path": b"/", "query_string": b"", "headers": headers},
        receive,
        send,
    )

    assert sent[0]["status"] == 400


async def test_each_request_gets_its_deadline(manual_clock) -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope)

    limits = Limits(app, manual_clock, max_body_bytes=1, body_timeout_s=1, request_timeout_s=90)
    await limits({"type": "http", "headers": []}, None, None)  # type: ignore[arg-type]

    assert seen["cynosure.deadline_s"] == manual_clock.monotonic_s() + 90


async def test_the_deadline_reaches_the_handler(client_for) -> None:
    async def show(request: Request) -> Response:
        assert request.deadline_s is not None
        return Response.json(request.deadline_s > SystemClock().monotonic_s())

    client = client_for(Route("GET", "/", show, operation_id="show"))

    assert (await client.get("/")).json() is True
