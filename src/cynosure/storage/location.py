"""Where something lies in a storage: one typed value for every place that a catalog hears of.

A maintainer must not break: two texts that any client would resolve to the same object have the same
`key()`, and whatever clients resolve differently is refused. Uniqueness of table locations, allowed locations
and the scope of credentials all rest on it. Stored location indexes are built from `key()`, so a change of
what it returns is a new stored format.

    text                                          class    authority   segments
    s3://bucket/a/b  s3a://…  s3n://…             s3       bucket      a, b
    gs://bucket/a/b                               gs       bucket      a, b
    abfss://container@account.dfs.core.windows.net/a/b  abfs://…  wasb://…@account.blob.…  wasbs://…
                                                  az       container@account.dfs.core.windows.net
    /a/b  file:/a/b  file:///a/b  file://localhost/a/b/
                                                  file               a, b

An account of Azure has two hosts, `dfs` and `blob`, for the same files; the authority names the first.

Percent sequences are literal characters, as object stores and Iceberg's clients take them. `?` and `#` are
refused because clients disagree on them: some cut the text there, and would reach another table's files.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cynosure.common.errors import BadInput

SchemeClass = Literal["s3", "gs", "az", "file"]

MAX_PATH_BYTES: Final = 1024
"""The longest key of S3 and GCS; file systems take at least as much."""
MAX_SEGMENT_BYTES: Final = 255
"""The longest file name. Object stores take more, but a table must be movable between storages."""

_CLASSES: Final[dict[str, SchemeClass]] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "abfss": "az",
    "abfs": "az",
    "wasbs": "az",
    "wasb": "az",
    "file": "file",
}
# No upper case: object stores do not allow it, and host names, which buckets become, ignore case.
_BUCKET: Final = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){0,254}")
# Container and account as Azure allows them. Some accounts have a zone in their host.
_CONTAINER: Final = re.compile(r"(?=[^@]{3,63}@)([a-z0-9]+(?:-[a-z0-9]+)*)@([a-z0-9]{3,24})\.(.{1,200})")
_AZURE_HOST: Final = re.compile(r"(z\d\d\.)?(?:dfs|blob)((?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?){2,})")
# What almost every path looks like: nothing in it can be refused, so nothing else is looked at.
_PLAIN: Final = re.compile(r"[\w=-][\w.=-]*(?:/[\w=-][\w.=-]*)*", re.ASCII)
_AMBIGUOUS: Final = re.compile(r"[?#\\]")
_DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
# Line and paragraph separators are no controls to Unicode, but end a line in logs and policy documents.
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Location:
    """A directory or file in a storage. Made by `parse` and `child` only; equal when the place is equal."""

    scheme: SchemeClass
    authority: str
    """The bucket; of Azure, container and account; empty for files."""
    segments: tuple[str, ...]
    text: str = field(compare=False)
    """As it was written, without the trailing slash: clients compare and join this spelling."""

    @classmethod
    def parse(cls, text: str, *, field: str = "location") -> "Location":
        """The location that a client or a configuration wrote. `field` is the name to blame in `BadInput`."""
        if text.startswith("/"):
            scheme: SchemeClass = "file"
            authority, path = "", text[1:]
        else:
            scheme, authority, path = _split(text, field)
        # One trailing slash says nothing; a path that is only a slash is an empty segment.
        trimmed = path if path == "/" else path.removesuffix("/")
        segments = tuple(trimmed.split("/")) if trimmed else ()
        _check_segments(scheme, segments, field)
        return cls(scheme, authority, segments, text.removesuffix("/") if segments or authority else text)

    def key(self) -> tuple[str, ...]:
        """Scheme class, authority and segments: equal for equal places, a prefix for what contains it."""
        return (self.scheme, self.authority, *self.segments)

    def is_within(self, other: "Location") -> bool:
        """Whether this is `other` or lies below it."""
        return (
            self.segments[: len(other.segments)] == other.segments
            and self.authority == other.authority
            and self.scheme == other.scheme
        )

    def overlaps(self, other: "Location") -> bool:
        """Whether one of the two is, or contains, the other."""
        return self.is_within(other) or other.is_within(self)

    def child(self, *segments: str) -> "Location":
        """The place below this one; each segment is one name, checked like every other."""
        added = "/".join(segments)
        if added.count("/") >= len(segments) > 0:
            raise _refuse("A path segment holds a slash", "segment", "Give one name per segment.", added)
        _check_segments(self.scheme, segments, "segment")
        below = (*self.segments, *segments)
        if len(self.text) + len(added) > MAX_PATH_BYTES // 4:
            _check_length(below, "segment")
        text = f"{self.text.removesuffix('/')}/{added}" if segments else self.text
        return Location(self.scheme, self.authority, below, text)

    def relative_to(self, base: "Location") -> str:
        """The path from `base` to here, without a leading slash; empty when they are equal."""
        if not self.is_within(base):
            raise BadInput(
                "A location is not below its base",
                field="location",
                fix="Give a location inside the base.",
                location=self.text,
                base=base.text,
            )
        return "/".join(self.segments[len(base.segments) :])

    def __str__(self) -> str:
        return self.text


def is_allowed(location: Location, allowed: Sequence[Location]) -> bool:
    """Whether `location` is one of `allowed` or lies below one of them."""
    return any(location.is_within(root) for root in allowed)


def _split(text: str, field: str) -> tuple[SchemeClass, str, str]:
    """Scheme class, authority and path without its first slash."""
    name, colon, rest = text.partition(":")
    scheme = _CLASSES.get(name.lower()) if colon else None
    if scheme is None:
        raise _refuse(
            "A location has no scheme that is served here",
            field,
            f"Begin it with {', '.join(_CLASSES)} or an absolute path.",
            text,
        )
    authority, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", rest[:1], rest[1:])
    if scheme == "file":
        if authority not in ("", "localhost") or slash != "/":
            fix = "Write an absolute path without a host, such as file:///data/warehouse."
            raise _refuse("A file location is not an absolute path of this machine", field, fix, text)
        return scheme, "", path
    if scheme == "az":
        return scheme, _container(authority if rest.startswith("//") else "", field, text), path
    if not (rest.startswith("//") and _BUCKET.fullmatch(authority)):
        fix = f"Write {name}://bucket/path, the bucket in lower case, without user or port."
        raise _refuse("A location has no valid bucket name", field, fix, text)
    return scheme, authority, path


def _container(authority: str, field: str, text: str) -> str:
    """Container and account, with the one host that stands for both of an account's."""
    found = _CONTAINER.fullmatch(authority)
    host = _AZURE_HOST.fullmatch(found[3]) if found else None
    if found is None or host is None:
        fix = "Write abfss://container@account.dfs.core.windows.net/path, all but the path in lower case."
        raise _refuse("A location has no valid container and account", field, fix, text)
    return f"{found[1]}@{found[2]}.{host[1] or ''}dfs{host[2]}"


def _check_segments(scheme: SchemeClass, segments: Sequence[str], field: str) -> None:
    joined = "/".join(segments)
    if scheme == "az" and (joined.endswith(".") or "./" in joined):
        fix = "Write path segments that do not end with a dot: clients of Azure cut it off."
        raise _refuse("A location has a segment that ends with a dot", field, fix, joined)
    if len(joined) <= MAX_SEGMENT_BYTES and _PLAIN.fullmatch(joined):
        return
    if not joined.isprintable():
        for character in joined:
            if unicodedata.category(character) in _REFUSED_CATEGORIES:
                fix = "Leave out control characters, line separators and halves of surrogate pairs."
                raise _refuse("A location holds a control character", field, fix, joined)
    if _AMBIGUOUS.search(joined):
        fix = "Leave out question marks, number signs and backslashes: clients read them differently."
        raise _refuse("A location holds a character with two meanings", field, fix, joined)
    for segment in segments:
        if not segment:
            raise _refuse("A location has an empty path segment", field, "Write single slashes.", joined)
        if len(segment) < 7 and _DOTS.fullmatch(segment):
            fix = "Write the path without . and .. segments, encoded or not."
            raise _refuse("A location has a dot segment", field, fix, joined)
    if len(joined) > MAX_SEGMENT_BYTES or not joined.isascii():  # a character of ASCII is one byte
        _check_length(segments, field)


def _check_length(segments: Sequence[str], field: str) -> None:
    path_bytes = len("/".join(segments).encode())
    if path_bytes > MAX_PATH_BYTES or any(len(segment.encode()) > MAX_SEGMENT_BYTES for segment in segments):
        raise BadInput(
            "A location is too long",
            field=field,
            fix=f"Use at most {MAX_PATH_BYTES} bytes in all and {MAX_SEGMENT_BYTES} bytes per segment.",
            path_bytes=path_bytes,
        )


def _refuse(message: str, field: str, fix: str, text: str) -> BadInput:
    # Shortened, and escaped: what was refused for its control characters must not reach a log as it is.
    shown: dict[str, Any] = {"location": ascii(text[:120])[1:-1]}
    return BadInput(message, field=field, fix=fix, **shown)
