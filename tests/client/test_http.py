import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cynosure.client.errors import RequestRefused, ServerFailed
from cynosure.client.http import HttpClient
from cynosure.common.clock import SystemClock
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    Expired,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    Unavailable,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(
    *answers: tuple[int, dict[str, str], bytes] | str,
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A real server that gives these answers in turn, the last one for ever; `cut` closes the connection."""
    queue = list(answers)
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        seen.append(head + (await reader.readexactly(length)))
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        if isinstance(answer, str):
            if answer == "hang":
                await reader.read()
        else:
            status, headers, body = answer
            lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


def client_of(url: str, clock: Any = None) -> HttpClient:
    return HttpClient(url, clock=clock or SystemClock(), rng=random.Random(1))


def envelope(message: str, type_: str) -> bytes:
    return b'{"error": {"message": "%s", "type": "%s", "code": 0}}' % (message.encode(), type_.encode())


OK = (200, {}, b'{"a": 1}')
BUSY = (503, {}, b"")


async def test_a_plain_answer_is_decoded_as_asked() -> None:
    async with answering(OK) as (url, seen), client_of(url) as client:
        reply = await client.request("POST", "/x", body={"b": 2}, request_id="r-1", query={"q": "1"})

    assert reply.decode(dict[str, int]) == {"a": 1}
    assert seen[0].startswith(b"POST /x?q=1 HTTP/1.1")
    assert b"x-request-id: r-1" in seen[0].lower()
    assert seen[0].endswith(b'{"b":2}')


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again_whatever_the_method(method: str, status: int) -> None:
    async with answering((status, {}, b""), OK) as (url, seen), client_of(url) as client:
        reply = await client.request(method, "/x")

    assert (reply.status, len(seen)) == (200, 2)


async def test_retry_after_is_honoured(manual_clock) -> None:
    slow_down = (503, {"retry-after": "7"}, b"")
    async with answering(slow_down, OK) as (url, seen), client_of(url, manual_clock) as client:
        asking = asyncio.create_task(client.request("GET", "/x", timeout_s=60))
        await manual_clock.wait_for_sleepers(1)
        await manual_clock.advance(6.9)
        assert not asking.done()
        await manual_clock.advance(0.2)
        await asking

    assert len(seen) == 2


@pytest.mark.parametrize("fault", ["cut", (502, {}, b""), (504, {}, b"")])
async def test_a_read_is_repeated_after_an_unknown_outcome(fault: Any) -> None:
    async with answering(fault, OK) as (url, seen), client_of(url) as client:
        assert (await client.request("GET", "/x")).status == 200
        assert len(seen) == 2


async def test_what_the_server_says_of_what_is_behind_it_is_its_answer() -> None:
    # Not a gateway's: a remote catalog that refuses it goes on doing so.
    told = (502, {}, b'{"error": {"type": "BadGatewayException", "message": "refused", "code": 502}}')
    async with answering(told, OK) as (url, seen), client_of(url) as client:
        with pytest.raises(ServerFailed):
            await client.request("GET", "/x")

        assert len(seen) == 1


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
@pytest.mark.parametrize("fault", ["cut", (500, {}, b"oops"), (502, {}, b""), (504, {}, b"")])
async def test_a_change_is_never_repeated_blindly(method: str, fault: Any) -> None:
    async with answering(fault, OK) as (url, seen), client_of(url) as client:
        with pytest.raises(OutcomeUnknown):
            await client.request(method, "/x")

        assert len(seen) == 1


async def test_a_change_with_an_idempotency_key_is_repeated() -> None:
    async with answering("cut", OK) as (url, seen), client_of(url) as client:
        assert (await client.request("POST", "/x", is_repeatable=True)).status == 200
        assert len(seen) == 2


async def test_an_unknown_outcome_stays_unknown_when_the_server_is_busy_afterwards() -> None:
    async with answering("cut", BUSY) as (url, _), client_of(url) as client:
        with pytest.raises(OutcomeUnknown):
            await client.request("POST", "/x", is_repeatable=True, timeout_s=2)


async def test_a_change_that_only_met_a_busy_server_was_not_applied() -> None:
    async with answering(BUSY) as (url, _), client_of(url) as client:
        with pytest.raises(Unavailable):
            await client.request("POST", "/x", timeout_s=1)


async def test_nobody_listening_means_nothing_applied(processes) -> None:
    async with client_of(f"http://127.0.0.1:{processes.reserve_port()}") as client:
        with pytest.raises(Unavailable, match="cannot be reached") as caught:
            await client.request("POST", "/x", timeout_s=1)
    assert "url" not in caught.value.details, "others may read it, who are not to know our addresses"


@pytest.mark.parametrize(("method", "expected"), [("GET", Unavailable), ("POST", OutcomeUnknown)])
async def test_the_deadline_ends_a_wait(method: str, expected: type[CynosureError]) -> None:
    async with answering("hang") as (url, _), client_of(url) as client:
        with pytest.raises(expected):
            await client.request(method, "/x", timeout_s=0.2)


@pytest.mark.parametrize(
    ("status", "type_", "expected"),
    [
        (400, "BadRequestException", BadInput),
        (400, "ValidationException", BadInput),
        (404, "NoSuchTableException", NotFound),
        (409, "AlreadyExistsException", AlreadyExists),
        (409, "CommitFailedException", Conflict),
        (409, "NamespaceNotEmptyException", Conflict),
        (410, "ExpiredException", Expired),
        (413, "", TooLarge),
        (401, "NotAuthorizedException", NotAuthenticated),
        (403, "ForbiddenException", Forbidden),
        (418, "TeapotException", RequestRefused),
        (504, "CommitStateUnknownException", OutcomeUnknown),
    ],
)
async def test_envelopes_become_errors_of_our_tree(
    status: int, type_: str, expected: type[CynosureError]
) -> None:
    answer = (status, {"x-request-id": "r-9"}, envelope("Said the server", type_))
    async with answering(answer) as (url, _), client_of(url) as client:
        with pytest.raises(expected) as caught:
            await client.request("POST", "/x", timeout_s=1)

    assert type(caught.value) is expected
    if expected is not OutcomeUnknown:
        assert caught.value.message == "Said the server"
        assert caught.value.details["request_id"] == "r-9"


@pytest.mark.parametrize("body", [b"", b"<html>secret page</html>", b'{"error": 5}', b"\xff", b"[" * 5000])
async def test_a_foreign_error_page_is_survived_and_not_repeated(body: bytes) -> None:
    async with answering((500, {}, body)) as (url, _), client_of(url) as client:
        with pytest.raises(ServerFailed, match="answered 500") as caught:
            await client.request("GET", "/x")

    assert "secret" not in str(caught.value)


async def test_an_answer_of_another_shape_is_an_error_not_a_crash() -> None:
    async with answering((200, {}, b"<html>")) as (url, _), client_of(url) as client:
        reply = await client.request("GET", "/x")

        with pytest.raises(ServerFailed):
            reply.decode(dict[str, int])


async def test_a_proxy_of_the_environment_does_not_come_between(monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with answering(OK) as (url, _), client_of(url) as client:
        assert (await client.request("GET", "/x", timeout_s=2)).status == 200


async def test_a_lost_answer_to_a_change_is_an_unknown_outcome(fault_proxy) -> None:
    from cynosure.testing.harness.faults import LoseAnswer

    async with answering(OK) as (url, seen):
        proxy = await fault_proxy(url)
        proxy.add(LoseAnswer())
        async with client_of(proxy.url) as client:
            with pytest.raises(OutcomeUnknown):
                await client.request("POST", "/x", timeout_s=5)

    assert len(seen) == 1, "the server did get it"


async def test_an_impatient_client_is_told_at_once_that_nobody_is_there() -> None:
    client = HttpClient("http://127.0.0.1:1", clock=SystemClock(), rng=random.Random(1), is_patient=False)

    async with client:
        async with asyncio.timeout(20):
            with pytest.raises(Unavailable, match="cannot be reached"):
                await client.request("POST", "/x", timeout_s=3600)
