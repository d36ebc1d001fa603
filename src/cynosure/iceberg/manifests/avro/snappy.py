"""Snappy's block format, decompressed.

In Python, because almost no manifest uses it: a compiled dependency would cost every installation more than
the slower read costs the few that need it.

A maintainer must not break: output never grows beyond the length the caller allows, whatever the input says.
"""

from cynosure.iceberg.manifests.avro.malformed import Malformed


def decompress(data: bytes, *, limit: int) -> bytes:
    """The bytes behind one compressed block. Raises `Malformed`."""
    try:
        return _decompress(data, limit)
    except IndexError:
        raise Malformed("A snappy block is cut off") from None


def _decompress(data: bytes, limit: int) -> bytes:
    length, at = _read_length(data)
    if length > limit:
        raise Malformed("A block is larger than allowed")
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            size = (tag >> 2) + 1
            if size > 60:
                extra = size - 60
                size = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            if at + size > end:
                raise Malformed("A snappy block is cut off")
            out += data[at : at + size]
            at += size
        else:
            if kind == 1:
                size, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
                at += 1
            else:
                width = 2 if kind == 2 else 4
                size, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little")
                at += width
            start = len(out) - offset
            if offset == 0 or start < 0:
                raise Malformed("A snappy block points outside of itself")
            if offset >= size:
                out += out[start : start + size]
            else:
                # The copy overlaps what it makes: a pattern that repeats.
                pattern = bytes(out[start:])
                out += (pattern * (size // offset + 1))[:size]
        if len(out) > length:
            raise Malformed("A snappy block is longer than it says")
    if len(out) != length:
        raise Malformed("A snappy block is shorter than it says")
    return bytes(out)


def _read_length(data: bytes) -> tuple[int, int]:
    length = shift = at = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            return length, at
        shift += 7
        if shift > 28:
            raise Malformed("The length of a snappy block is damaged")
