"""One commit as events: who did what to what, from what the commit itself holds.

Must not break: of a change's detail only what is named here is told. A detail is whatever an operation wrote
into the log; what this module does not know stays there.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from cynosure.auth.audit.events import StoredEvent, StoredTarget, cut
from cynosure.auth.receipts import unpack_receipt
from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import Change, CommitRecord, RequestRecord
from cynosure.persistence.index import decode_key
from cynosure.persistence.spi import REALM_SCOPE, CatalogId, RefKey

MAX_TARGETS: Final = 1_000
KINDS: Final = frozenset(
    {
        "catalog",
        "namespace",
        "table",
        "view",
        "generic-table",
        "policy",
        "principal",
        "principal-role",
        "catalog-role",
        "realm",
    }
)
DETAILS: Final = (
    "principal",
    "principal_role",
    "catalog_role",
    "privilege",
    "privileges",
    "on_kind",
    "on",
    "policy_type",
    "version",
    "is_trusted",
    "tables",
    "namespaces",
    "entries",
)
"""What is told of a change beside its id and name."""


class Source(NamedTuple):
    """Where commits come from."""

    key: RefKey
    catalog: str
    """Name of the catalog; empty for what belongs to the realm."""


class DroppedCatalog(NamedTuple):
    """A catalog that a commit to `catalogs` took off the list."""

    id: CatalogId
    name: str


def tell_commit(source: Source, record: CommitRecord) -> list[StoredEvent]:
    """One event for each request in the commit that was done there.

    A refusal that was put there, so that the request stays refused, is nothing that was done.
    """
    return [_tell_request(source, record, each) for each in record.requests if not _is_refusal(each)]


def _is_refusal(request: RequestRecord) -> bool:
    try:
        return bool(request.receipt) and unpack_receipt(request.receipt).kind == "refusal"
    except CorruptObject:
        # Told rather than kept quiet; whoever repeats the request hears of the damage.
        return False


def tell_gap(source: Source, first: int, last: int, time_us: int, reason: str) -> StoredEvent:
    """The event for commits of which no account is left."""
    return StoredEvent(
        time_us=time_us,
        kind="gap",
        reason=reason,
        catalog=source.catalog,
        catalog_id=_catalog_id(source.key),
        reference=source.key.name,
        sequence=first,
        count=max(0, last - first + 1),
    )


def list_dropped(record: CommitRecord) -> list[DroppedCatalog]:
    """The catalogs that a commit to `catalogs` took off the list."""
    changes = [change for request in record.requests for change in request.changes]
    details = [_decode(change) for change in changes if change.kind == "catalog-dropped"]
    return [
        DroppedCatalog(CatalogId(str(each["id"])), str(each.get("name", "")))
        for each in details
        if each.get("id")
    ]


def _tell_request(source: Source, record: CommitRecord, request: RequestRecord) -> StoredEvent:
    return StoredEvent(
        time_us=record.time_us,
        kind="change",
        decision="allowed",
        operation=request.operation,
        principal=request.principal,
        actor=request.actor,
        roles=request.roles,
        request_id=request.request_id,
        catalog=source.catalog,
        catalog_id=_catalog_id(source.key),
        targets=tuple(_tell_change(source, change) for change in request.changes[:MAX_TARGETS]),
        targets_omitted=max(0, len(request.changes) - MAX_TARGETS),
        reference=source.key.name,
        sequence=record.sequence,
    )


def _tell_change(source: Source, change: Change) -> StoredTarget:
    detail = _decode(change)
    kind = next((each for each in _prefixes(change.kind) if each in KINDS), "")
    old = _name_in_key(source, change)
    name = _text(detail.get("name") or ".".join(map(str, detail.get("path") or ()))) or old
    return StoredTarget(
        kind=kind,
        name=name,
        id=_text(detail.get("id", "")),
        change=change.kind,
        before=old if old != name and change.kind.endswith("-renamed") else "",
        details={each: _text(detail[each]) for each in DETAILS if each in detail},
    )


def _prefixes(kind: str) -> list[str]:
    """`principal-role-created` → `principal-role-created`, `principal-role`, `principal`."""
    words = kind.split("-")
    return ["-".join(words[:length]) for length in range(len(words), 0, -1)]


def _name_in_key(source: Source, change: Change) -> str:
    """The name that the key of a change in a catalog's `names` stands for."""
    if source.key.name != "main" or change.index != "names":
        return ""
    try:
        return cut(".".join(decode_key(change.key)[1:]))
    except CorruptObject:
        return ""


def _decode(change: Change) -> Mapping[str, Any]:
    try:
        detail = msgspec.msgpack.decode(change.detail)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return detail if isinstance(detail, dict) else {}


def _text(value: Any) -> str:
    match value:
        case str():
            return cut(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list() if all(isinstance(each, str) for each in value):
            return cut(", ".join(value))
        case _:
            return ""


def _catalog_id(key: RefKey) -> str:
    return "" if key.catalog == REALM_SCOPE else key.catalog
