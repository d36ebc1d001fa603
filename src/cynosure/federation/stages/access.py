"""Whose credentials clients of a federated catalog get: ours, the remote's, or none.

`own`: as in any other catalog, made by its own storage for the places of the table. `none`: clients bring
theirs. `remote`: what the remote gave for the table is passed on, as far as it is for nothing else.

The remote's credentials cannot be made less by us, and nobody says whether they only read. So they are given
to those only who may write the table, and only for prefixes inside the table's own places.

Must not break: of what a remote sends beside its keys nothing is passed on. An address among it would send
our clients, with their data, wherever it likes.
"""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

from msgspec import structs

from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import Credential, Scope, Vended
from cynosure.storage.location import Location, is_allowed

_KEYS: Final = re.compile(
    r"s3\.(access-key-id|secret-access-key|session-token|session-token-expires-at-ms)"
    r"|gcs\.oauth2\.(token|token-expires-at)"
    r"|adls\.sas-token(-expires-at-ms)?\.[A-Za-z0-9.-]+"
)
"""What credentials consist of, in the words of Iceberg's clients."""
_LONGEST_MS: Final = 36 * 3_600_000
"""The longest that Amazon gives sessions for. Who has longer ones never comes back to be authorized again."""
_EXPIRES: Final = re.compile(r".*-expires-at(-ms)?(\..*)?")


def without_own_access(catalog: OpenCatalog) -> OpenCatalog:
    """The same catalog, whose own storage gives clients nothing."""
    same = copy(catalog)
    same.storage = structs.replace(catalog.storage, vending=None, signer=None, scan_vending=None)
    return same


def narrow(given: Sequence[tuple[str, Mapping[str, str]]], scope: Scope, *, now_ms: int) -> Vended | None:
    """What a remote gave, as far as it may be passed on for this scope; `None` when that is nothing."""
    kept: list[Credential] = []
    ends: list[int] = []
    for prefix, config in given:
        keys = {name: value for name, value in config.items() if _KEYS.fullmatch(name)}
        ends_ms = _find_end(keys)
        is_good = ends_ms is not None and now_ms < ends_ms <= now_ms + _LONGEST_MS
        if not scope.is_writable or ends_ms is None or not is_good or not _is_inside(prefix, scope):
            continue
        kept.append(Credential(prefix, keys))
        ends.append(ends_ms)
    return Vended(tuple(kept), now_ms, min(ends)) if kept else None


def _is_inside(prefix: str, scope: Scope) -> bool:
    try:
        return is_allowed(Location.parse(prefix), scope.locations)
    except BadInput:
        return False


def _find_end(keys: Mapping[str, str]) -> int | None:
    """When the first of them ends. What does not say so is for ever, and not passed on."""
    said = [value for name, value in keys.items() if _EXPIRES.fullmatch(name)]
    try:
        return min((int(value) for value in said), default=None)
    except ValueError:
        return None
