"""What a downscoped token of Google may reach: a credential access boundary.

A boundary is rules, each with a bucket, roles, and a condition in CEL. It is built here from typed parts:
names become string literals of that language and nothing else.

A maintainer must not break: a prefix ends with a slash, or `orders` would open `orders2`; and every character
of a name that could end or change a literal is escaped.
"""

import string
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.storage.access.ports import Scope
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location

READ: Final = "inRole:roles/storage.objectViewer"
WRITE: Final = "inRole:roles/storage.legacyBucketWriter"
"""Creates, replaces and deletes objects, also in parts."""
MOST_RULES: Final = 10
_PLAIN: Final = frozenset(string.ascii_letters + string.digits + "/_-.= ")
"""What stands for itself in a literal. Not even `%` and `+`: Google's own clients encode boundaries twice, so
somebody may decode them twice."""


class _Condition(Struct, frozen=True):
    expression: str


class _Rule(Struct, frozen=True, rename="camel"):
    available_resource: str
    available_permissions: tuple[str, ...]
    availability_condition: _Condition


def make_boundary(scope: Scope) -> bytes:
    """The boundary of a scope, in JSON. `StorageRefused` when Google would not take one that long."""
    by_bucket: dict[str, list[Location]] = {}
    for location in scope.locations:
        by_bucket.setdefault(location.authority, []).append(location)
    rules: list[_Rule] = []
    for bucket, locations in by_bucket.items():
        objects = [_objects_below(each) for each in locations]
        listings = [_listings_below(each) for each in locations]
        rules.append(_rule(bucket, READ, [*objects, *listings]))
        if scope.is_writable:
            rules.append(_rule(bucket, WRITE, objects))
    if not rules or len(rules) > MOST_RULES:
        raise StorageRefused(
            "Credentials for this many buckets cannot be given",
            buckets=len(by_bucket),
            fix=f"Keep a table's files in at most {MOST_RULES // 2} buckets.",
        )
    return msgspec.json.encode({"accessBoundary": {"accessBoundaryRules": rules}})


def quote_cel(text: str) -> str:
    """The string literal of CEL that means this text."""
    return "'" + "".join(map(_escape, text)) + "'"


def _escape(character: str) -> str:
    if character in _PLAIN:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _rule(bucket: str, role: str, conditions: list[str]) -> _Rule:
    resource = f"//storage.googleapis.com/projects/_/buckets/{bucket}"
    return _Rule(resource, (role,), _Condition(" || ".join(conditions)))


def _objects_below(location: Location) -> str:
    name = f"projects/_/buckets/{location.authority}/objects/{_prefix_of(location)}"
    return f"resource.name.startsWith({quote_cel(name)})"


def _listings_below(location: Location) -> str:
    attribute = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
    return f"{attribute}.startsWith({quote_cel(_prefix_of(location))})"


def _prefix_of(location: Location) -> str:
    return "".join(f"{segment}/" for segment in location.segments)
