"""What a request asks for, as one short text: two requests with one key must have the same.

Must not break: it does not depend on how a client spells the same request (order of members, white space,
escapes, `1.0` or `1`, defaults spelled out in the query), because clients write it anew for every attempt.
Fingerprints are stored: computed in another way, they refuse what a server of the version before began.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from cynosure.common.canonical_json import canonicalize

_QUERY_MARK = b"\n?"
"""Between body and query. Canonical JSON has no line break; other bodies are refused whatever the query."""


def fingerprint(body: bytes, query: msgspec.Struct | None = None) -> str:
    """SHA-256, in lower-case hexadecimal, of the body in its canonical form and of the query's own values.

    A body that is not JSON counts as the bytes it is, no body as none. `query` is the query string as the
    route read it: what the route ignores is not in it, and a parameter with its default value is as good as
    left out.
    """
    digest = sha256()
    if body:
        canonical = canonicalize(body)
        digest.update(body if canonical is None else canonical)
    if query is not None and (given := _find_given(query)):
        canonical = canonicalize(msgspec.json.encode(given))
        if canonical is None:
            raise ValueError("A query struct has a value that is not JSON")
        digest.update(_QUERY_MARK)
        digest.update(canonical)
    return digest.hexdigest()


def bind(found: str, key: str) -> str:
    """A fingerprint as it is stored: who does not know the key cannot try out what the payload may have been.

    A payload may hold a secret that somebody thought up.
    """
    # Key and fingerprint cannot be mistaken for others: one of them has a fixed length.
    return sha256(key.encode() + bytes.fromhex(found)).hexdigest()


def _find_given(query: msgspec.Struct) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for field, name, default in _list_defaults(type(query)):
        value = getattr(query, field)
        if value is not msgspec.UNSET and value != default:
            given[name] = value
    return given


@lru_cache(maxsize=256)
def _list_defaults(query_type: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    return tuple(
        (field.name, field.encode_name, _default_of(field)) for field in msgspec.structs.fields(query_type)
    )


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
