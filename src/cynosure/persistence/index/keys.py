"""Names and ids as index keys: bytes without NUL, in the order of what they encode.

A maintainer must not break: the order of encoded keys is the order of the tuples, and a prefix of
whole elements is a prefix of the bytes. Stored trees are sorted by these bytes, so any change here
is a new stored format.

    element separator     01
    bytes 00, 01, 02      02 10, 02 11, 02 12      (below 03, the first byte that stands for itself)
"""

from cynosure.common.errors import BadInput, CorruptObject

_SEPARATOR = b"\x01"
_ESCAPES = ((b"\x02", b"\x02\x12"), (b"\x01", b"\x02\x11"), (b"\x00", b"\x02\x10"))

MAX_ID = (1 << 63) - 1
_ID_BYTES = 9
_ID_SHIFTS = (56, 49, 42, 35, 28, 21, 14, 7, 0)


def encode_key(*parts: str) -> bytes:
    """One key for one or more elements; `("a", "b")` sorts after `("a",)` and before `("aa",)`."""
    if not parts:
        raise BadInput("A key needs at least one element", field="parts", fix="Give the name's elements.")
    try:
        if "".join(parts).isprintable():  # no control characters, hence nothing to escape
            return "\x01".join(parts).encode()
        return _SEPARATOR.join([_escape(part.encode()) for part in parts])
    except UnicodeEncodeError as error:
        raise BadInput(
            "A name holds half of a surrogate pair", field="parts", fix="Send names as valid Unicode."
        ) from error


def decode_key(key: bytes) -> tuple[str, ...]:
    """The elements of a key that `encode_key` made."""
    try:
        if b"\x02" not in key and b"\x00" not in key:
            return tuple(key.decode().split("\x01"))
        return tuple(_unescape(part).decode() for part in key.split(_SEPARATOR))
    except UnicodeDecodeError as error:
        raise CorruptObject("An index key is not valid UTF-8") from error


def prefix_of(*parts: str) -> bytes:
    """What every key *below* these elements starts with, and no other key. No elements: every key."""
    return encode_key(*parts) + _SEPARATOR if parts else b""


def below(key: bytes) -> bytes:
    """As `prefix_of`, of a key that is encoded already. Nothing else sorts between a key and these."""
    return key + _SEPARATOR


def encode_id_key(number: int) -> bytes:
    """A 63-bit id as nine bytes of seven bits each, all with the high bit set: ordered, never NUL."""
    if not 0 <= number <= MAX_ID:
        raise BadInput("An id does not fit into 63 bits", field="id", fix="Use ids of `persistence.ids`.")
    return bytes([number >> shift & 0x7F | 0x80 for shift in _ID_SHIFTS])


def decode_id_key(key: bytes) -> int:
    """The id of a key that `encode_id_key` made."""
    if len(key) != _ID_BYTES or min(key) < 0x80:
        raise CorruptObject("An index key is not an encoded id", key_bytes=len(key))
    number = 0
    for byte in key:
        number = number << 7 | byte & 0x7F
    return number


def after(key: bytes) -> bytes:
    """The smallest scan start behind `key`, for paging. A bound only: it holds NUL, so it is no key."""
    return key + b"\x00"


def end_of_prefix(prefix: bytes) -> bytes | None:
    """The first bytes behind everything that starts with `prefix`; `None` when there is no such end."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _escape(element: bytes) -> bytes:
    # Order: 02 first, because the other two replacements bring new 02 bytes.
    for plain, escaped in _ESCAPES:
        element = element.replace(plain, escaped)
    return element


def _unescape(element: bytes) -> bytes:
    head, *escapes = element.split(b"\x02")
    if b"\x00" in element or any(not rest or not 0x10 <= rest[0] <= 0x12 for rest in escapes):
        raise CorruptObject("An index key holds a broken escape")
    return head + b"".join(bytes([rest[0] - 0x10]) + rest[1:] for rest in escapes)
