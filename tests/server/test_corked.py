import asyncio

import pytest

from cynosure.server.corked import CorkedTransport

pytestmark = pytest.mark.anyio


class Recorder(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        assert not self.is_closed
        self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


async def test_writes_of_one_turn_are_sent_together_and_in_order():
    inner = Recorder()
    corked = CorkedTransport(inner, asyncio.get_running_loop())
    corked.write(b"head ")
    corked.write(b"body")
    assert inner.sent == []
    await asyncio.sleep(0)
    assert inner.sent == [b"head body"]
    corked.write(b"next")
    await asyncio.sleep(0)
    assert inner.sent == [b"head body", b"next"]


async def test_closing_sends_first():
    inner = Recorder()
    corked = CorkedTransport(inner, asyncio.get_running_loop())
    corked.write(b"last words")
    corked.close()
    assert inner.sent == [b"last words"]
    assert corked.is_closing()
    await asyncio.sleep(0)
    assert inner.sent == [b"last words"]


async def test_a_stream_that_never_waits_is_sent_in_pieces():
    inner = Recorder()
    corked = CorkedTransport(inner, asyncio.get_running_loop())
    for _ in range(10):
        corked.write(b"x" * 20_000)
    assert len(inner.sent) == 2
    await asyncio.sleep(0)
    assert b"".join(inner.sent) == b"x" * 200_000


async def test_what_cannot_wait_is_sent_behind_what_was_gathered():
    inner = Recorder()
    corked = CorkedTransport(inner, asyncio.get_running_loop())
    corked.write(b"first ")

    corked.write_now(b"second ", b"third")

    assert inner.sent == [b"first second third"]
    await asyncio.sleep(0)
    assert inner.sent == [b"first second third"]
