import asyncio
import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, TooLarge
from cynosure.query.scan_task import Credentials
from cynosure.query.stream import framing
from cynosure.query.stream.frames import Assigned, Beat, Hello, NewCredentials, Probe, Stop
from cynosure.query.stream.framing import FrameBuffer, decode_down, decode_up, encode_frame, read_up
from cynosure.testing.small_broker import make_task

DOWN = (
    Assigned(make_task("f0"), 2.5),
    NewCredentials(Credentials(4, {"a": "b"}, 5)),
    Probe(7),
    Stop("Nobody wants it"),
)


@given(st.lists(st.integers(0, 400), max_size=20))
def test_frames_are_the_same_however_their_bytes_arrive(cuts):
    data = b"".join(encode_frame(message) for message in DOWN)
    buffer, heard = FrameBuffer(), []
    places = [0, *sorted(cut * len(data) // 400 for cut in cuts), len(data)]
    for begin, end in pairwise(places):
        heard += buffer.feed(data[begin:end])
    assert tuple(heard) == DOWN


# The first byte is that of no map, and messages are maps.
@given(st.binary(max_size=200).map(b"\x01".__add__))
def test_whatever_is_no_message_is_bad_input_and_not_repeated(body):
    for decode in (decode_up, decode_down):
        with pytest.raises(BadInput) as raised:
            decode(body)
        assert raised.value.__cause__ is None
        assert str(raised.value).startswith("A frame holds no message that is known here (field='frame')")


@given(st.binary(max_size=200))
def test_a_reader_of_any_bytes_ends(data):
    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        with suppress(BadInput, asyncio.IncompleteReadError):
            while True:
                await read_up(reader)

    asyncio.run(read())


def test_deep_nesting_is_bad_input():
    with pytest.raises(BadInput):
        decode_up(b"\x81\xa4type" + b"\x91" * 60_000)


def test_a_length_is_judged_before_anything_is_read():
    async def read(length: int) -> None:
        reader = asyncio.StreamReader()
        # No byte of the body: whoever waited for it would wait for ever.
        reader.feed_data(struct.pack(">I", length))
        await asyncio.wait_for(read_up(reader, 100), 30)

    for length in (0, 101, 2**32 - 1):
        with pytest.raises(BadInput):
            asyncio.run(read(length))


def test_what_the_other_end_would_refuse_is_not_sent(monkeypatch):
    monkeypatch.setattr(framing, "MAX_FRAME_BYTES", 50)
    encode_frame(Beat())
    with pytest.raises(TooLarge) as raised:
        encode_frame(Assigned(make_task("f0")))
    assert raised.value.field == "fragment"


def test_a_worker_cannot_say_what_only_a_broker_says():
    for message in DOWN:
        with pytest.raises(BadInput):
            decode_up(encode_frame(message)[4:])
    with pytest.raises(BadInput):
        decode_down(encode_frame(Hello("q", "f", "t", 0, 0, "w"))[4:])
