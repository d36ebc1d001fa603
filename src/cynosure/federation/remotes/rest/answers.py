"""Tables and views out of a remote's answers.

A maintainer must not break: metadata is parsed with limits, and whatever is wrong with it is the remote's
fault and never the caller's input.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from cynosure.common.errors import CynosureError
from cynosure.federation.remote import UNCHANGED, RemoteTable, RemoteView, Tag, Unchanged
from cynosure.federation.remotes.transport import Answered
from cynosure.iceberg.metadata import parse_metadata
from cynosure.iceberg.views import parse_view

T = TypeVar("T")
Fail = Callable[[str], CynosureError]
"""The error for an answer that cannot be used, given what is wrong with it."""

_MOST_ETAG_CHARS: Final = 1_024
_MOST_LOCATION_CHARS: Final = 4_096
_MOST_BESIDE_BYTES: Final = 2**20
_LARGE: Final = 2**20
"""Documents of this size are parsed beside the event loop."""


class Credential(Struct):
    """What reaches files below a prefix."""

    prefix: str
    config: dict[str, str]


_CONFIG: Final = msgspec.json.Decoder(dict[str, str] | None)
_CREDENTIALS: Final = msgspec.json.Decoder(list[Credential] | None)


class TableAnswer(Struct, rename="kebab"):
    """The answer of loadTable, createTable, registerTable and updateTable."""

    metadata: Raw
    metadata_location: str | None = None
    config: Raw = Raw()
    storage_credentials: Raw = Raw()


class ViewAnswer(Struct, rename="kebab"):
    """The answer of every request that gives a view."""

    metadata: Raw
    metadata_location: str | None = None


async def read_table(body: TableAnswer, tag: Tag, fail: Fail) -> RemoteTable:
    """A table."""
    metadata = await _parse(parse_metadata, bytes(body.metadata), fail)
    config = _read_small(body.config, _CONFIG, fail) or {}
    given = _read_small(body.storage_credentials, _CREDENTIALS, fail) or ()
    return RemoteTable(metadata, tag, config, [(each.prefix, each.config) for each in given])


async def read_view(body: ViewAnswer, tag: Tag, fail: Fail) -> RemoteView:
    """A view."""
    return RemoteView(await _parse(parse_view, bytes(body.metadata), fail), tag)


def find_unchanged(tag: Tag, known: Tag | None) -> Unchanged | None:
    """Whether an answer is the known version, though it was sent whole."""
    if known is None:
        return None
    if known.etag is not None and tag.etag is not None:
        return UNCHANGED if known.etag == tag.etag else None
    is_same = known.metadata_location is not None and known.metadata_location == tag.metadata_location
    return UNCHANGED if is_same else None


def read_tag(answer: Answered, metadata_location: str | None, origin: str, fail: Fail) -> Tag:
    """What tells this version from others, of this remote and of others."""
    if not metadata_location or len(metadata_location) > _MOST_LOCATION_CHARS:
        raise fail("no metadata location")
    etag = answer.headers.get("etag")
    is_etag = etag is not None and 0 < len(etag) <= _MOST_ETAG_CHARS and etag.isascii() and etag.isprintable()
    return Tag(metadata_location, f"{origin} {etag}" if is_etag else None)


def is_address(metadata_location: str | None) -> bool:
    """Whether a remote names something that it would answer itself, and no file."""
    return metadata_location is not None and metadata_location.startswith(("http://", "https://"))


def find_etag(known: Tag | None, origin: str) -> str | None:
    """What the remote itself called a version, if it was this one: another may call anything so."""
    named, _, etag = ("" if known is None else known.etag or "").partition(" ")
    return etag if named == origin and etag else None


def _read_small(raw: Raw, decoder: msgspec.json.Decoder[T], fail: Fail) -> T | None:
    """What is beside the metadata, where there is something. Millions of entries would hold all others up."""
    json = bytes(raw)
    if not json:
        return None
    if len(json) > _MOST_BESIDE_BYTES:
        raise fail("too large")
    try:
        return decoder.decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise fail("not what the protocol says") from error


async def _parse(parse: Callable[[bytes], T], json: bytes, fail: Fail) -> T:
    try:
        if len(json) < _LARGE:
            return parse(json)
        return await asyncio.to_thread(parse, json)
    except (CynosureError, RecursionError) as error:
        raise fail("metadata that is not valid") from error
