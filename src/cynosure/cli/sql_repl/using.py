"""`USE`: what names are relative to is the client's matter, so the command line does it itself.

    USE catalog.namespace        USE namespace (in the catalog that is used)
    USE CATALOG catalog          USE NAMESPACE | SCHEMA | DATABASE namespace

A maintainer must not break: a text that is not wholly a USE is left to the gateway.
"""

import re
from typing import Final

from msgspec import structs

from cynosure.client.query import QuerySession

_PART: Final = r"(?:`(?:[^`]|``)+`|[^\s`.;]+)"
_USE: Final = re.compile(
    rf"use\s+(?:(?P<kind>catalog|namespace|schema|database)\s+)?(?P<name>{_PART}(?:\s*\.\s*{_PART})*)",
    re.IGNORECASE,
)
_PARTS: Final = re.compile(_PART)


def apply_use(statement: str, session: QuerySession) -> QuerySession | None:
    """The session after a USE; `None` when the statement is another one."""
    found = _USE.fullmatch(statement.strip())
    if found is None:
        return None
    kind = (found["kind"] or "").lower()
    parts = [_plain(each) for each in _PARTS.findall(found["name"])]
    if kind == "catalog":
        return structs.replace(session, catalog=".".join(parts), namespace=())
    if kind or (len(parts) == 1 and session.catalog):
        return structs.replace(session, namespace=tuple(parts))
    return structs.replace(session, catalog=parts[0], namespace=tuple(parts[1:]))


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
