"""What a session of S3 may do, as a document in Amazon's policy language.

The document narrows what the assumed role may do; it never adds to it. It is made of structs that are encoded
as a whole, so no name can end a string or begin a statement. Names still meet a language inside the strings:
`*` and `?` are wildcards there, `${…}` a variable.

    Amazon          writes them literally as ${*}, ${?} and ${$}
    other stores    do not: SeaweedFS 4.48 and MinIO 2026-02 take ${*} for "${" anything "}"

So only Amazon's own gets them escaped; elsewhere a location with such a character is refused, because what
could be written would reach more than was meant, or nothing.

A maintainer must not break: every prefix ends with a slash, in resources and in conditions. A listing of
`orders` without it would show the files of `orders2`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from cynosure.storage.access.ports import Scope
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location

LONGEST_CHARACTERS: Final = 2_048
"""The most that token services take."""

_READ: Final = ("s3:GetObject", "s3:GetObjectVersion")
_WRITE: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_KMS_READ: Final = ("kms:Decrypt", "kms:DescribeKey")
_KMS_WRITE: Final = ("kms:Encrypt", "kms:GenerateDataKey")
_SPECIAL: Final = re.compile(r"[*?]|\$\{")
_ESCAPED: Final = re.compile(r"[*?$]")

OneOrMore = str | tuple[str, ...]
"""A single text needs no list around it: every character counts."""


class Statement(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """One rule: who holds the session may do these things to these resources."""

    effect: Literal["Allow", "Deny"]
    action: OneOrMore
    resource: OneOrMore
    condition: Mapping[str, Mapping[str, OneOrMore]] | None = None


class Document(Struct, frozen=True, rename="pascal"):
    """A whole policy. What no statement allows is denied."""

    version: Literal["2012-10-17"]
    """The version of the language, which never changed since; without it variables would be plain text."""
    statement: tuple[Statement, ...]


class Dialect(Struct, frozen=True):
    """How a store reads policies."""

    partition: str = "aws"
    """Which of Amazon's worlds resources are named in: `aws`, `aws-cn`, `aws-us-gov`."""
    has_escapes: bool = False
    """Whether `${*}` is a literal star. Known of Amazon only."""
    has_roles: bool = False
    """Whether sessions belong to a role, so that one could be used to assume it again, without a policy."""


def session_policy(scope: Scope, dialect: Dialect, *, kms_keys: Sequence[str] = ()) -> str:
    """The document for exactly this scope, as text.

    `StorageRefused` for a location that the store's policies cannot express, and when there are too many.
    """
    text = encode(Document("2012-10-17", _statements(scope, dialect, kms_keys)))
    if len(text) > LONGEST_CHARACTERS:
        raise StorageRefused(
            "These locations do not fit into one session policy",
            locations=len(scope.locations),
            characters=len(text),
            most_characters=LONGEST_CHARACTERS,
            fix="Keep data and metadata of a table below one location, or shorten the paths.",
        )
    return text


def encode(document: Document) -> str:
    """A document in as few characters as it takes, all of them ASCII: token services refuse others."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"), ensure_ascii=True)


def _statements(scope: Scope, dialect: Dialect, kms_keys: Sequence[str]) -> tuple[Statement, ...]:
    if not scope.locations:
        # No document at all would mean all that the role may do.
        return (Statement("Deny", "*", "*"),)
    arn = f"arn:{dialect.partition}:s3:::"
    below: list[str] = []
    listed: dict[str, list[str]] = {}
    for location in scope.locations:
        prefix = _prefix_of(location, dialect)
        below.append(f"{arn}{location.authority}/{prefix}*")
        listed.setdefault(location.authority, []).append(f"{prefix}*")
    statements = [
        Statement("Allow", _READ + _WRITE if scope.is_writable else _READ, _one_or_more(below)),
        Statement("Allow", "s3:GetBucketLocation", _one_or_more([arn + bucket for bucket in listed])),
    ]
    for bucket, prefixes in listed.items():
        # A request to list a whole bucket names no prefix, and a condition on what is not named never holds.
        condition = None if "*" in prefixes else {"StringLike": {"s3:prefix": _one_or_more(prefixes)}}
        statements.append(Statement("Allow", "s3:ListBucket", arn + bucket, condition))
    if kms_keys:
        actions = _KMS_READ + _KMS_WRITE if scope.is_writable else _KMS_READ
        keys = [_escape(key, dialect) for key in kms_keys]
        if None in keys:
            raise StorageRefused(
                "A key of the storage holds a character that its policies give a meaning to",
                fix="Name every key of currentKmsKey and allowedKmsKeys in full.",
            )
        statements.append(Statement("Allow", actions, _one_or_more([key for key in keys if key])))
    if dialect.has_roles:
        # Not allowed above, and still: SeaweedFS 4.48 asks only the role whether it may be assumed.
        statements.append(Statement("Deny", "sts:*", "*"))
    return tuple(statements)


def _prefix_of(location: Location, dialect: Dialect) -> str:
    if not location.segments:
        return ""
    escaped = _escape("/".join(location.segments), dialect)
    if escaped is None:
        raise StorageRefused(
            "A location holds a character that the policies of this store give a meaning to",
            location=location.text,
            fix="Ask for remote signing instead, or use a location without * ? and ${.",
        )
    return f"{escaped}/"


def _escape(text: str, dialect: Dialect) -> str | None:
    """The text as a literal of the policy language; `None` where the language has none for it."""
    if dialect.has_escapes:
        return _ESCAPED.sub(r"${\g<0>}", text)
    return None if _SPECIAL.search(text) else text


def _one_or_more(texts: Sequence[str]) -> OneOrMore:
    return texts[0] if len(texts) == 1 else tuple(texts)
