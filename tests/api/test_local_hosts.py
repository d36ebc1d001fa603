"""Requests that a web page sends to this machine under a name of its own."""

import random

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock

pytestmark = pytest.mark.anyio


async def answer(request: Request) -> Response:
    return Response(204)


def client(only_host: str | None) -> httpx.AsyncClient:
    service = make_service(
        [Route("GET", "/x", answer, operation_id="x", summary="x", responses={204: None})],
        title="t",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        only_host=only_host,
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=service.app), base_url="http://t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8181", "127.0.0.1:8181", "127.8.8.8", "[::1]:8181", "[::1]", "lake:1", "Lake"],
)
async def test_this_machine_may_be_called_by_its_own_names(host: str) -> None:
    async with client("lake") as http:
        for _ in range(2):
            assert (await http.get("/x", headers={"host": host})).status_code == 204


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8181",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "[::2]",
        "localhost@evil",
        "\xff",
    ],
)
async def test_a_request_for_another_machine_is_refused(host: str) -> None:
    async with client("lake") as http:
        refused = await http.get("/x", headers=[(b"host", host.encode("latin-1"))])
        unknown = await http.get("/nothing", headers=[(b"host", host.encode("latin-1"))])

    assert (refused.status_code, unknown.status_code) == (421, 421)
    assert refused.json()["error"]["type"] == "MisdirectedRequestException"


async def test_a_service_that_knows_its_clients_may_have_any_name() -> None:
    async with client(None) as http:
        assert (await http.get("/x", headers={"host": "evil.example"})).status_code == 204
