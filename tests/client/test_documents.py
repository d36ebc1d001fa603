import asyncio
from contextlib import asynccontextmanager

import pytest

from cynosure.client.documents import fetch_document
from cynosure.common.addresses import is_safe_url
from cynosure.common.errors import Unavailable

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(*answer: bytes, is_dripping: bool = False):
    """A server that sends these bytes to whoever connects."""

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in answer:
            writer.write(part)
        await writer.drain()
        if is_dripping:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(answer_one, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/document"
    finally:
        server.close()


def head(length: int, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {length}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def test_a_document_is_fetched_whole():
    async with serving(head(6), b"abc", b"def") as url:
        assert await fetch_document(url) == b"abcdef"


async def test_a_document_that_is_too_large_is_given_up():
    async with serving(head(100), b"x" * 100) as url:
        with pytest.raises(Unavailable, match="too large"):
            await fetch_document(url, max_bytes=99)
        assert len(await fetch_document(url, max_bytes=100)) == 100


async def test_a_small_answer_that_unpacks_to_a_large_one_is_given_up():
    import gzip

    packed = gzip.compress(bytes(10_000_000))
    async with serving(head(len(packed), "200 OK", "content-encoding: gzip"), packed) as url:
        with pytest.raises(Unavailable, match="too large"):
            await fetch_document(url)


async def test_a_server_that_never_ends_is_given_up():
    async with serving(head(100), b"x", is_dripping=True) as url:
        with pytest.raises(Unavailable):
            await fetch_document(url, timeout_s=0.2)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error", "204 No Content"])
async def test_any_other_status_is_no_document(status):
    async with serving(head(0, status)) as url:
        with pytest.raises(Unavailable, match="status"):
            await fetch_document(url)


async def test_a_redirect_is_not_followed():
    async with (
        serving(head(6), b"secret") as there,
        serving(head(0, "302 Found", f"location: {there}")) as url,
    ):
        with pytest.raises(Unavailable, match="status 302"):
            await fetch_document(url)


async def test_what_does_not_answer_or_speaks_otherwise_is_unavailable():
    async with serving(b"nonsense\r\n\r\n") as url:
        with pytest.raises(Unavailable):
            await fetch_document(url)
    with pytest.raises(Unavailable):
        await fetch_document("http://127.0.0.1:1/x", timeout_s=2)


async def test_nothing_is_fetched_in_clear_over_the_network():
    with pytest.raises(Unavailable, match="not HTTPS"):
        await fetch_document("http://idp.example/keys")


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://idp.example/x", True),
        ("http://localhost:8080/x", True),
        ("http://127.0.0.1/x", True),
        ("http://127.9.9.9/x", True),
        ("http://[::1]:80/x", True),
        ("http://idp.example/x", False),
        ("http://localhost.example/x", False),
        ("http://127.0.0.1.example/x", False),
        ("http://localhost@idp.example/x", False),
        ("http://10.0.0.1/x", False),
        ("file:///etc/passwd", False),
        ("ftp://localhost/x", False),
        ("https://", False),
        ("https://[::1/x", False),
        ("", False),
    ],
)
def test_which_addresses_are_safe(url, is_safe):
    assert is_safe_url(url) is is_safe
