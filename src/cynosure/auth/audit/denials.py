"""What was refused, and to whom.

A refusal of a known caller is durable before it is answered. Those that arrive while a write is under way
share the next one, so a storm of them costs few commits. When the store cannot be written, or not soon, they
go to the log and the answer is still the refusal. Refusals of strangers are written a moment later.

Nobody can fill the store with refusals (`write_limit.py`): beyond so many of a principal they go to the log
and are counted, beyond so many of strangers they are only counted.

Must not break: recording never turns a refusal into another answer, and nothing of a credential reaches an
event.
"""

import asyncio
from typing import Final, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.audit import metrics
from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.events import StoredEvent, StoredTarget, cut
from cynosure.auth.audit.journal import BATCH_EVENTS, append
from cynosure.auth.audit.write_limit import WriteLimit
from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import CynosureError, NotAuthenticated
from cynosure.common.telemetry.logs import ERROR, WARNING, Log
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import CatalogId, RealmId

OPERATION: Final = "record-denials"
_MOST_WAITING: Final = 1_024
"""Refusals of one realm that may wait to be written."""
_AT_ONCE: Final = 1_000
"""Refusals of one principal that are written however fast they come."""
_PATIENCE_S: Final = 5.0
"""How long an answer waits for its refusal to be durable."""
_SUMMARY_EVERY_S: Final = 60.0
_log = Log(__name__)


class DeniedTarget(Struct, frozen=True):
    """What a refused operation was about."""

    kind: str
    name: str


class Denial(Struct, frozen=True):
    """A request that was refused for who asked, or for what they may do."""

    realm: RealmId
    principal: str
    """Empty when nobody knows who asked."""
    actor: str
    roles: tuple[str, ...]
    operation: str
    target: str
    """As messages name it."""
    request_id: str
    reason: str
    missing: tuple[str, ...] = ()
    is_authentication: bool = False
    targets: tuple[DeniedTarget, ...] = ()
    """The same as `target`, one by one, where that is known."""
    catalog: CatalogId | None = None


class Denials(Protocol):
    """Where refusals go."""

    async def record(self, denial: Denial) -> None:
        """Keep it. Never raises; returns when it is durable, or when it will not be soon."""
        ...


def denial_of(
    error: Exception, *, realm: RealmId, caller: Caller | None, request_id: str, operation: str
) -> Denial:
    """What is recorded of a refusal. `operation` is what was asked for, where the error does not say."""
    denial = Denial(
        realm=realm,
        principal="" if caller is None else caller.principal,
        actor="" if caller is None else caller.actor,
        roles=() if caller is None else caller.roles,
        operation=operation,
        target="",
        request_id=request_id,
        # The message only: it is constant text, which details are not.
        reason=error.message if isinstance(error, CynosureError) else type(error).__name__,
        is_authentication=caller is None or isinstance(error, NotAuthenticated),
    )
    if not isinstance(error, AccessDenied):
        return denial
    targets = tuple(DeniedTarget(each.kind, each.name) for each in error.targets)
    return replace(
        denial,
        operation=error.operation.name,
        target=" and ".join(f"{each.kind} {each.name}".rstrip() for each in targets),
        reason=error.decision.reason or error.message,
        missing=tuple(sorted({each.privilege for each in error.decision.missing})),
        targets=targets,
        catalog=next((each.catalog for each in error.targets if each.catalog is not None), None),
    )


class _Waiting(NamedTuple):
    denial: Denial
    times: int
    time_us: int
    is_written: "asyncio.Future[bool]"


class DenialLog:
    """Writes refusals to the events of their realm. One per process."""

    def __init__(
        self,
        persistence: Persistence,
        names: CatalogNames,
        *,
        failures_per_minute: int,
        denials_per_minute: int = 120,
        patience_s: float = _PATIENCE_S,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._persistence = persistence
        self._names = names
        self._patience_s = patience_s
        self._most_waiting = most_waiting
        self._failures: WriteLimit[RealmId] = WriteLimit(
            persistence.clock, per_minute=failures_per_minute, at_once=failures_per_minute
        )
        self._known: WriteLimit[tuple[RealmId, str]] = WriteLimit(
            persistence.clock, per_minute=denials_per_minute, at_once=_AT_ONCE
        )
        self._waiting: dict[RealmId, list[_Waiting]] = {}
        self._writers: dict[RealmId, asyncio.Task[None]] = {}
        self._summary: asyncio.Task[None] | None = None

    async def record(self, denial: Denial) -> None:
        """See `Denials.record`."""
        kind = _kind_of(denial)
        metrics.DENIALS.inc(kind=kind)
        if denial.is_authentication:
            if self._failures.admit(denial.realm):
                self._enqueue(denial)
            else:
                metrics.SUPPRESSED.inc()
                self._schedule_summary()
            return
        if not self._known.admit((denial.realm, denial.principal)):
            metrics.SUPPRESSED.inc()
            self._schedule_summary()
            _unwritten(denial, "Too many refusals of this principal; the audit only counts them")
            return
        waiting = self._enqueue(denial)
        if waiting is None:
            return
        await asyncio.wait({waiting.is_written}, timeout=self._patience_s)
        if not waiting.is_written.done():
            _unwritten(denial, "The store takes too long; it may still be written")

    async def close(self) -> None:
        """Write what is left."""
        if self._summary is not None:
            self._summary.cancel()
        self._summarize()
        while self._writers:
            await asyncio.wait(self._writers.values())

    def _enqueue(self, denial: Denial, times: int = 1) -> _Waiting | None:
        queue = self._waiting.setdefault(denial.realm, [])
        if len(queue) >= self._most_waiting:
            _unwritten(denial, "Too many refusals wait to be written")
            return None
        written = asyncio.get_running_loop().create_future()
        waiting = _Waiting(denial, times, self._persistence.clock.now_us(), written)
        queue.append(waiting)
        if denial.realm not in self._writers:
            self._writers[denial.realm] = asyncio.create_task(self._write(denial.realm))
        return waiting

    async def _write(self, realm: RealmId) -> None:
        queue = self._waiting[realm]
        try:
            while queue:
                some = queue[:BATCH_EVENTS]
                del queue[:BATCH_EVENTS]
                await self._write_some(realm, some)
        finally:
            # Before anyone else runs, so that the next refusal starts another writer.
            del self._writers[realm], self._waiting[realm]

    async def _write_some(self, realm: RealmId, some: list[_Waiting]) -> None:
        reason = ""
        try:
            # A name from a header: nothing may be kept for a realm that does not exist.
            if await self._persistence.heads.find(realm_reference(realm, "audit")) is None:
                reason = "There is no such realm"
            else:
                events = [await self._to_event(each) for each in some]
                await append(self._persistence, realm, events, operation=OPERATION)
        except CynosureError as error:
            reason = str(error)
        except Exception as error:
            # The outermost place of this task: whatever it was, those who wait must have their answer.
            reason = "A defect kept it from being written"
            _log.event("audit.denials_broken_off", level=ERROR, error=error, with_traceback=True)
        for each in some:
            if reason:
                _unwritten(each.denial, reason)
            if not each.is_written.done():
                each.is_written.set_result(not reason)

    async def _to_event(self, waiting: _Waiting) -> StoredEvent:
        denial = waiting.denial
        name = await self._names.find(denial.realm, denial.catalog) if denial.catalog else None
        targets = [StoredTarget(kind=each.kind, name=cut(each.name)) for each in denial.targets]
        if not targets and denial.target:
            targets = [StoredTarget(name=cut(denial.target))]
        return StoredEvent(
            time_us=waiting.time_us,
            kind=_kind_of(denial),
            decision="denied",
            operation=cut(denial.operation),
            principal=cut(denial.principal),
            actor=cut(denial.actor),
            roles=denial.roles,
            request_id=cut(denial.request_id),
            catalog=name or "",
            catalog_id=denial.catalog or "",
            targets=tuple(targets),
            reason=cut(denial.reason),
            missing=denial.missing,
            count=waiting.times,
        )

    # --- what was not written one by one ---------------------------------------------------------

    def _schedule_summary(self) -> None:
        if self._summary is None:
            self._summary = asyncio.create_task(self._summarize_later())

    async def _summarize_later(self) -> None:
        await self._persistence.clock.sleep(_SUMMARY_EVERY_S)
        self._summary = None
        self._summarize()

    def _summarize(self) -> None:
        for realm, times in self._failures.take_suppressed().items():
            reason = "Further failed authentications, which were not written one by one"
            self._enqueue(Denial(realm, "", "", (), "", "", "", reason, is_authentication=True), times)
        for (realm, principal), times in self._known.take_suppressed().items():
            reason = "Further refusals of this principal, which are in the log of the server"
            self._enqueue(Denial(realm, principal, "", (), "", "", "", reason), times)


def _kind_of(denial: Denial) -> str:
    return "authentication-failure" if denial.is_authentication else "denial"


def _unwritten(denial: Denial, reason: str) -> None:
    metrics.UNWRITTEN.inc()
    _log.event("audit.denial_unwritten", level=WARNING, denial=denial, cause=reason)
