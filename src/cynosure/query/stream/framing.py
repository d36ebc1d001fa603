"""Frames on a byte stream: four bytes of length, big endian, then one message in msgpack.

A maintainer must not break: the length is judged before a byte of the message is read, and whatever does not
decode as one of the expected messages is `BadInput`, whose text holds nothing of it.
"""

import asyncio
import struct
from typing import Final

import msgspec

from cynosure.common.errors import BadInput, TooLarge
from cynosure.query.stream.frames import DOWN, ENCODER, MAX_FRAME_BYTES, UP, Down, Up

HEADER_BYTES: Final = 4
MAX_HELLO_BYTES: Final = 4 * 2**10
"""Of whoever has not shown a token yet."""
MAX_UP_BYTES: Final = 64 * 2**10
"""What workers say is short: rows do not come this way."""

_LENGTH: Final = struct.Struct(">I")
_FIX: Final = "Run the same version of Cynosure in the gateway and on the executors."


def encode_frame(message: Up | Down) -> bytes:
    """A message as it is sent. `TooLarge` when the other end would refuse it."""
    body = ENCODER.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise TooLarge(
            "A message to a scan is too long",
            field="fragment",
            fix="Read fewer files, or compare with fewer constants.",
            limit_bytes=MAX_FRAME_BYTES,
        )
    return _LENGTH.pack(len(body)) + body


def decode_length(header: bytes, limit_bytes: int) -> int:
    """How many bytes the message has. `BadInput` beyond the limit, and for none at all."""
    length: int = _LENGTH.unpack(header)[0]
    if not 0 < length <= limit_bytes:
        raise BadInput("A frame is empty or longer than it may be", field="frame", fix=_FIX)
    return length


def decode_up(body: bytes) -> Up:
    """What a worker said."""
    try:
        message: Up = UP.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _unknown() from None
    return message


def decode_down(body: bytes) -> Down:
    """What the broker said."""
    try:
        message: Down = DOWN.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _unknown() from None
    return message


async def read_up(reader: asyncio.StreamReader, limit_bytes: int = MAX_UP_BYTES) -> Up:
    """The next message of a worker. `asyncio.IncompleteReadError` when the stream ended."""
    header = await reader.readexactly(HEADER_BYTES)
    return decode_up(await reader.readexactly(decode_length(header, limit_bytes)))


class FrameBuffer:
    """Puts messages of the broker together from bytes as they arrive."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Down]:
        """The messages that are complete now."""
        self._bytes += data
        messages = []
        while len(self._bytes) >= HEADER_BYTES:
            end = HEADER_BYTES + decode_length(bytes(self._bytes[:HEADER_BYTES]), MAX_FRAME_BYTES)
            if len(self._bytes) < end:
                break
            messages.append(decode_down(bytes(self._bytes[HEADER_BYTES:end])))
            del self._bytes[:end]
        return messages


def _unknown() -> BadInput:
    # Without the decoder's error: that could name what was in the message.
    return BadInput("A frame holds no message that is known here", field="frame", fix=_FIX)
