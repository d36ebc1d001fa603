"""A piece of JSON kept byte for byte, with its typed value read on demand.

A maintainer must not break: `json` is what came in, less white space between tokens. Nothing is encoded again
from a typed value, so fields that this version does not know are never lost.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw

from cynosure.iceberg.errors import InvalidMetadata

T = TypeVar("T")

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""What Iceberg calls int. JSON numbers beyond it would not survive other implementations."""

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What Iceberg calls long."""

MAX_DEPTH: Final = 320
"""Deepest nesting of JSON that is kept. Far enough from Python's own limit that what was accepted once can be
decoded and walked wherever it is needed later; deeper than any valid type."""

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_AT: Final = re.compile(r" - at `(.*)`$")


class Document(Generic[T]):
    """JSON text together with what it means.

    Equal when the JSON is equal, whatever the order of its fields. The value is decoded at most once.
    """

    __slots__ = ("_decode", "_value", "json")

    def __init__(self, json: bytes, decode: Callable[[bytes], T]) -> None:
        self.json = json
        self._decode = decode
        self._value: T | None = None

    @property
    def value(self) -> T:
        """The typed view. Unknown fields are only in `json`."""
        if self._value is None:
            self._value = self._decode(self.json)
        return self._value

    def with_fields(self, changes: dict[str, Any]) -> "Document[T]":
        """A document with some top-level fields set, by wire name; all others stay as they are."""
        fields: dict[str, Any] = _FIELDS.decode(self.json)
        return Document(msgspec.json.encode({**fields, **changes}), self._decode)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        if self.json == other.json:
            return True
        return bool(msgspec.json.decode(self.json) == msgspec.json.decode(other.json))

    __hash__ = None  # type: ignore[assignment]  # equal documents may differ in bytes

    def __repr__(self) -> str:
        return f"Document({self.json.decode()})"


_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])


def compact_json(raw: bytes | Raw, *, field: str) -> bytes:
    """The same JSON without white space between tokens; refuses what is not JSON in UTF-8."""
    json = bytes(raw)
    try:
        json.decode()
        compact = msgspec.json.format(json, indent=-1)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise InvalidMetadata("This is not JSON in UTF-8", field=field, fix="Send valid JSON.") from error
    except RecursionError as error:
        raise _too_deep(field) from error
    if compact.count(b"[") + compact.count(b"{") > MAX_DEPTH and _is_deep(compact):
        raise _too_deep(field)
    return compact


def decode_json(json: bytes | Raw, decoder: msgspec.json.Decoder[T], *, field: str) -> T:
    """Decode, naming the exact field that is wrong."""
    try:
        return decoder.decode(json)
    except msgspec.ValidationError as error:
        text = str(error)
        at = _AT.search(text)
        raise InvalidMetadata(
            "The value is missing or of a wrong type",
            field=field + at.group(1).removeprefix("$") if at else field,
            fix="Send what the Iceberg specification asks for here.",
            problem=_AT.sub("", text)[:200],
        ) from error
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise InvalidMetadata("This is not JSON in UTF-8", field=field, fix="Send valid JSON.") from error
    except RecursionError as error:
        raise _too_deep(field) from error


def _too_deep(field: str) -> InvalidMetadata:
    return InvalidMetadata("This is nested too deeply", field=field, fix="Flatten it.", max_depth=MAX_DEPTH)


def _is_deep(json: bytes) -> bool:
    # All in C: only brackets are left, and each round takes the innermost pairs away.
    brackets = _without_strings(json).translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _without_strings(json: bytes) -> bytes:
    if b"\\" in json:
        return _STRING.sub(b"", json)
    # Every quote begins or ends a string then, and splitting takes a fifth of the time.
    return b"".join(json.split(b'"')[::2])
