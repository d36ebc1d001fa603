"""Tokens as a client gets, keeps and renews them, from a real server on a socket."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

import pytest

from cynosure.client.api import ApiClient, segment
from cynosure.client.http import HttpClient
from cynosure.client.tokens import TOKEN_PATH, ClientCredentials, TokenSource
from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import NotAuthenticated
from cynosure.common.secrets import Secret

pytestmark = pytest.mark.anyio


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now_us(self) -> int:
        return int(self.now_s * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Issuer:
    """A server that hands out t1, t2, … and knows which of them are good."""

    def __init__(self) -> None:
        self.url = ""
        self.lifetime_s = 3600
        self.forms: list[dict[str, list[str]]] = []
        self.seen: list[tuple[str, str, str]] = []
        self.refused: set[str] = set()
        self.token_answer: tuple[int, bytes] | None = None

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest) if name}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = line.split()
        status, answer = 200, b"{}"
        if path == TOKEN_PATH:
            self.forms.append({**parse_qs(body.decode()), "realm": [headers.get("polaris-realm", "")]})
            status, answer = self.token_answer or (
                200,
                b'{"access_token": "t%d", "expires_in": %d}' % (len(self.forms), self.lifetime_s),
            )
        else:
            token = headers.get("authorization", "").removeprefix("Bearer ")
            self.seen.append((method, path, token))
            if token in self.refused:
                status = 401
                answer = b'{"error": {"message": "No", "type": "NotAuthorizedException", "code": 401}}'
        writer.write(
            b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(answer))
        )
        writer.write(answer)
        writer.close()


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0)
    async with server:
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield issuer


@asynccontextmanager
async def asking(issuer: Issuer, clock: Clock | None = None) -> AsyncIterator[ApiClient]:
    used = clock or SystemClock()
    credentials = ClientCredentials("alice", Secret("hunter 2 & more"))
    async with HttpClient(issuer.url, clock=SystemClock(), rng=random.Random(1)) as http:
        tokens = TokenSource(http, credentials, used, headers={"Polaris-Realm": "north"})
        yield ApiClient(http, tokens=tokens, realm="north")


async def test_a_token_is_asked_for_once_and_shown_with_every_request() -> None:
    async with issuing() as issuer, asking(issuer) as api:
        await asyncio.gather(*(api.request("GET", f"/x{number}") for number in range(5)))

    [form] = issuer.forms
    assert form["client_id"] == ["alice"]
    assert form["client_secret"] == ["hunter 2 & more"]
    assert form["grant_type"] == ["client_credentials"]
    assert form["scope"] == ["PRINCIPAL_ROLE:ALL"]
    assert form["realm"] == ["north"]
    assert {token for _, _, token in issuer.seen} == {"t1"}


@pytest.mark.parametrize(("lifetime_s", "good_s"), [(3600, 3539), (10, 8.9)])
async def test_a_token_is_renewed_before_it_expires(lifetime_s: int, good_s: float) -> None:
    clock = Hands()
    async with issuing() as issuer, asking(issuer, clock) as api:
        issuer.lifetime_s = lifetime_s
        await api.request("GET", "/x")
        clock.now_s = good_s
        await api.request("GET", "/x")
        clock.now_s += 1.2
        await api.request("GET", "/x")

    assert [token for _, _, token in issuer.seen] == ["t1", "t1", "t2"]


async def test_a_refused_token_is_renewed_once_and_the_request_sent_again() -> None:
    async with issuing() as issuer, asking(issuer) as api:
        issuer.refused = {"t1"}

        await api.request("POST", "/x", body={})

    assert issuer.seen == [("POST", "/x", "t1"), ("POST", "/x", "t2")]


async def test_what_is_refused_again_is_the_answer() -> None:
    async with issuing() as issuer, asking(issuer) as api:
        issuer.refused = {"t1", "t2"}

        with pytest.raises(NotAuthenticated):
            await api.request("GET", "/x")

    assert len(issuer.seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        (401, b'{"error": "unauthorized_client", "error_description": "The client is unknown"}'),
        (400, b'{"error": "invalid_client"}'),
    ],
)
async def test_credentials_that_are_not_good_are_told_without_the_secret(answer: tuple[int, bytes]) -> None:
    async with issuing() as issuer, asking(issuer) as api:
        issuer.token_answer = answer

        with pytest.raises(NotAuthenticated) as caught:
            await api.request("GET", "/x")

    assert "gives no token" in str(caught.value)
    assert "alice" in str(caught.value)
    assert "hunter" not in f"{caught.value} {caught.value.__cause__!r} {caught.value.details}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a b/c", "a%20b%2Fc"),
        ("ü%", "%C3%BC%25"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("a.b", "a.b"),
        ("?#", "%3F%23"),
    ],
)
async def test_any_name_is_one_segment_of_a_path(name: str, expected: str) -> None:
    async with issuing() as issuer, asking(issuer) as api:
        await api.request("GET", f"/things/{segment(name)}")

    [(_, path, _)] = issuer.seen
    assert path == f"/things/{expected}"
