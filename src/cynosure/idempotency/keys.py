"""The Idempotency-Key header, and the scope that a key is good for.

One key of one caller stands for one operation on one resource; anywhere else the same text is another key.
What is stored is the hash of all of that together.

Must not break: there is one scope for one resource. A path that is spelled in another way, but is answered by
the same route with the same parameters, must not open a second scope: the request would be executed twice.
And two scopes never share a hash, whatever characters names and keys have. Hashes are stored, in records and
in the chain: computed in another way, they let a request that an older server executed run again.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cynosure.common.errors import BadInput
from cynosure.persistence.spi import ObjId

if TYPE_CHECKING:
    import hashlib

HEADER: Final = "Idempotency-Key"
PATTERN: Final = "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"
MAX_LENGTH: Final = 255
_REMEMBERED_CHARS: Final = 512

_KEY: Final = re.compile(rb"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}")
_RULE: Final = (
    f"Send one {HEADER} of 1 to {MAX_LENGTH} letters, digits, '_', '.' and '-' that begins with a letter or "
    "digit, such as a UUID of version 7."
)


def check_key(values: Sequence[bytes]) -> str:
    """The key in the values of the request's Idempotency-Key headers, of which there must be exactly one."""
    if len(values) != 1:
        raise BadInput(
            "A request has one Idempotency-Key or none", field=HEADER, fix=_RULE, count=len(values)
        )
    # The key itself is in no message: whoever knows it can ask for the answer again.
    if _KEY.fullmatch(values[0]) is None:
        raise BadInput("The Idempotency-Key is not a valid key", field=HEADER, fix=_RULE)
    return values[0].decode("ascii")


def hash_scope(
    *,
    realm: str,
    catalog: str,
    method: str,
    path: str,
    principal_id: ObjId,
    actor_id: ObjId,
    key: str,
) -> str:
    """SHA-256 of a key and all it is bound to, in lower-case hexadecimal.

    `catalog` is empty for requests to none, `path` comes from `canonical_path`, `actor_id` is that of the
    service that acts for the principal and 0 if none does.
    """
    scope = (realm, catalog, method, path, str(principal_id), str(actor_id))
    begin = _begin if len(path) <= _REMEMBERED_CHARS else _begin.__wrapped__
    digest = begin(scope).copy()
    digest.update(_framed(key))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _begin(scope: tuple[str, ...]) -> "hashlib._Hash":
    return sha256(b"".join(_framed(part) for part in scope))


def _framed(part: str) -> bytes:
    # The length in front: no character of one part can pass for the end of another.
    encoded = part.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def canonical_path(template: str, params: Mapping[str, str]) -> str:
    """The one spelling of a path: a route's template with its percent-decoded parameters.

    Everything but RFC 3986's unreserved characters is encoded, in UTF-8 and upper-case hexadecimal, and those
    never are; so `%1f` and `%1F`, `%2D` and `-`, are the same.
    """
    values = tuple([params[name] for name in _split(template)[1]])
    # Only short ones are remembered: a client can think of any number of long ones.
    fill = _fill if sum(map(len, values)) <= _REMEMBERED_CHARS else _fill.__wrapped__
    return fill(template, values)


@lru_cache(maxsize=4096)
def _fill(template: str, values: tuple[str, ...]) -> str:
    literals, _ = _split(template)
    parts = [literals[0]]
    for literal, value in zip(literals[1:], values, strict=True):
        parts.append(quote(value, safe=""))
        parts.append(literal)
    return "".join(parts)


@lru_cache(maxsize=1024)
def _split(template: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is around the parameters of a template, and their names."""
    parts = re.split(r"\{([^{}]*)\}", template)
    return tuple(parts[::2]), tuple(parts[1::2])
