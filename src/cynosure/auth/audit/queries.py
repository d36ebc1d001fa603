"""Statements that a trusted service ran for somebody, as it tells them.

They change nothing, so no commit tells of them: the service does, once for each statement.

Must not break: only a service that acts for a principal is heard, and what it says is about that principal.
Who could write for others could blame them.
"""

import hashlib
from typing import Final

from msgspec import Struct

from cynosure.auth.audit import metrics
from cynosure.auth.audit.events import StoredEvent, StoredTarget, cut
from cynosure.auth.audit.journal import append_in, audit_of
from cynosure.auth.caller import Caller, Identity
from cynosure.common.errors import Forbidden
from cynosure.persistence.commit import Request
from cynosure.persistence.lifecycle import Persistence

OPERATION: Final = "record-query"
QUERY: Final = "query"
"""What the operation is called in events."""
MAX_TABLES: Final = 100
MAX_SQL_BYTES: Final = 16 * 1024


class RanQuery(Struct, frozen=True):
    """A statement that has ended."""

    statement_id: str
    outcome: str
    sql: str
    """Without its constants."""
    tables: tuple[str, ...]
    """With their catalogs before them."""
    policies: tuple[str, ...]
    rows: int
    bytes: int
    elapsed_ms: int
    engine: str
    reason: str = ""
    """Why that engine."""
    error: str = ""
    """The kind of error only."""


class QueryLog:
    """Writes statements to the events of their realm."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence

    async def record(self, caller: Caller, query: RanQuery) -> None:
        """Keep it; a statement that was told before is kept once. Durable when this returns."""
        identity = caller.identity
        if identity is None or not identity.actor_id:
            raise Forbidden(
                "Only a trusted service that acts for a principal tells what it ran",
                fix="Exchange the service's token and the principal's for one on behalf of it.",
                principal=caller.principal,
            )
        event = _event(caller, query, self._persistence.clock.now_us())
        request = Request(
            append_in(self._persistence, [event]),
            caller.principal,
            operation=OPERATION,
            request_id=caller.request_id,
            key_hash=_key(identity, query.statement_id),
            actor=caller.actor,
            roles=caller.roles,
        )
        await audit_of(self._persistence, caller.realm).commit(request)
        metrics.QUERIES.inc()


def _key(identity: Identity, statement_id: str) -> str:
    """Under which the statement is in the chain: two services, or principals, may call theirs the same."""
    parts = (QUERY, str(identity.actor_id), str(identity.principal_id), statement_id)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _event(caller: Caller, query: RanQuery, now_us: int) -> StoredEvent:
    paths = [each.partition(".") for each in query.tables]
    catalogs = {catalog for catalog, _, _ in paths}
    is_one = len(catalogs) == 1
    targets = [
        StoredTarget(kind="table", name=cut(name), details={} if is_one else {"catalog": cut(catalog)})
        for catalog, _, name in paths[:MAX_TABLES]
    ]
    targets += [StoredTarget(kind="policy", name=cut(each)) for each in query.policies[:MAX_TABLES]]
    details = {
        "statement-id": query.statement_id,
        "outcome": query.outcome,
        "engine": query.engine,
        "engine-reason": query.reason,
        "error": query.error,
        "rows": str(query.rows),
        "bytes": str(query.bytes),
        "elapsed-ms": str(query.elapsed_ms),
    }
    return StoredEvent(
        time_us=now_us,
        kind=QUERY,
        decision="allowed",
        operation=QUERY,
        principal=caller.principal,
        actor=caller.actor,
        roles=caller.roles,
        request_id=caller.request_id,
        catalog=cut(catalogs.pop()) if is_one else "",
        targets=tuple(targets),
        targets_omitted=len(query.tables) + len(query.policies) - len(targets),
        details={
            **{name: cut(value) for name, value in details.items() if value},
            "sql": _cut_sql(query.sql),
        },
    )


def _cut_sql(sql: str) -> str:
    encoded = sql.encode("utf-8", "replace")
    if len(encoded) <= MAX_SQL_BYTES:
        return sql
    return encoded[: MAX_SQL_BYTES - len("…".encode())].decode("utf-8", "ignore") + "…"
