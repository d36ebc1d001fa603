"""One garbage collection.

    candidates ──► raise generations ──► mark ──► doomed = candidates - marked ──► delete

1. *Candidates* are the immutable rows older than the grace period, listed **before** step 2.
2. Every reference's *generation* is raised by a swap that changes nothing else. A commit prepared before
   now loses its own swap and is prepared again, under new ids. So a candidate that is not reachable
   after this step can never become reachable: not by a process that was stopped for a day, and not by
   one whose clock is wrong.
3. *Mark* everything reachable from heads, recent heads, retained history and pins.
4. *Delete* the rest. The doomed set is saved first, so a run that is interrupted goes on from there.

Objects of a type that is not installed are never candidates, nor are updateable objects.

Retention counts from the *beginning* of a run: whatever may be restored or pinned while it lasts, on the
word of `history/retained.py`, is then kept by it.

Must not break: the order of the first two steps, and that beginning. Everything else only decides how much
is kept.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct
from pyroaring import BitMap64

from cynosure.common.clock import Clock
from cynosure.common.errors import MissingObject, OutcomeUnknown, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.gc.doomed import DOOMED, Doomed, DoomedScope
from cynosure.persistence.gc.pace import Pacer
from cynosure.persistence.gc.pins import PIN
from cynosure.persistence.history.retained import kept_for
from cynosure.persistence.ids import IdSource
from cynosure.persistence.objects import TypeRegistry
from cynosure.persistence.reach import Reach
from cynosure.persistence.settings import GcSettings
from cynosure.persistence.spi import (
    REALM_SCOPE,
    SYSTEM_REALM,
    Backend,
    CatalogId,
    ObjId,
    ObjKey,
    RealmId,
    Reference,
)
from cynosure.persistence.store import NewObject, Store

_log = Log(__name__)

Scope = tuple[RealmId, CatalogId]
_SCAN_ROWS = 1_000
_DELETE_ROWS = 500


class GcProgress(Struct, frozen=True):
    """Where a run is; enough to go on after a crash."""

    phase: str
    """`list`, `mark` or `delete`."""
    done: int = 0
    doomed: ObjId | None = None
    """The saved doomed set, once there is one."""


class GcReport(Struct, frozen=True):
    """What a run did."""

    scanned: int = 0
    marked: int = 0
    doomed: int = 0
    deleted: int = 0
    is_dry_run: bool = False


Report = Callable[[GcProgress], Awaitable[None]]
"""Called often; saves progress, renews or checks the lease, and raises when the run must stop."""


async def _ignore(progress: GcProgress) -> None:
    return


class _Beginning(NamedTuple):
    """What the retention of one run counts from."""

    at_s: float
    oldest_us: int
    """States replaced since then are kept."""
    promised_us: int
    """States replaced since then are kept by every collection, however its clock differs."""


class Collector:
    """Collects garbage in a whole store. At most one should run; two at once are safe, only wasteful."""

    def __init__(
        self,
        backend: Backend,
        store_of: Callable[[RealmId, CatalogId], Store],
        *,
        types: TypeRegistry,
        ids: IdSource,
        clock: Clock,
        settings: GcSettings,
    ) -> None:
        self._backend = backend
        self._store_of = store_of
        self._types = types
        self._ids = ids
        self._clock = clock
        self._settings = settings
        self._pacer = Pacer(clock, settings.rows_per_second)

    async def run(
        self, *, is_dry_run: bool = False, resume: GcProgress | None = None, report: Report = _ignore
    ) -> GcReport:
        """Collect once. With `resume`, go on deleting where an interrupted run stopped."""
        if resume is not None and resume.doomed is not None:
            system = self._store_of(SYSTEM_REALM, REALM_SCOPE)
            saved = await system.find(DOOMED, resume.doomed)
            if saved is not None:
                deleted = await self._delete(saved, resume, report)
                return GcReport(doomed=saved.count(), deleted=deleted)
        # Order: before the pins are listed.
        beginning = self._begin()
        candidates, pins, scanned = await self._list(report)
        refs = await self._backend.list_refs()
        if not is_dry_run:
            # Order: after the candidates are listed, before anything is marked.
            refs = [raised for ref in refs if (raised := await self._raise_generation(ref))]
        marked, doomed = await self._mark(candidates, refs, pins, beginning, report)
        if is_dry_run or not doomed.scopes:
            return GcReport(scanned, marked, doomed.count(), 0, is_dry_run)
        progress = await self._save(doomed)
        await report(progress)
        deleted = await self._delete(doomed, progress, report)
        return GcReport(scanned, marked, doomed.count(), deleted)

    def _begin(self) -> _Beginning:
        now_us, retention = self._clock.now_us(), self._settings.history_retention
        return _Beginning(
            self._clock.monotonic_s(),
            now_us - int(retention.total_seconds() * 1_000_000),
            now_us - int(kept_for(retention).total_seconds() * 1_000_000),
        )

    async def _list(
        self, report: Report
    ) -> tuple[dict[Scope, dict[str, Any]], dict[Scope, list[ObjId]], int]:
        candidates: dict[Scope, dict[str, Any]] = {}
        pins: dict[Scope, list[ObjId]] = {}
        before_us = self._clock.now_us() - int(self._settings.grace.total_seconds() * 1_000_000)
        after: ObjKey | None = None
        scanned = 0
        while heads := await self._backend.scan(after=after, limit=_SCAN_ROWS):
            for head in heads:
                realm, catalog, name, obj_id = head.key
                object_type = self._types.find(name)
                if name == PIN.name:
                    pins.setdefault((realm, catalog), []).append(obj_id)
                elif object_type is not None and not object_type.is_mutable and head.created_us < before_us:
                    by_type = candidates.setdefault((realm, catalog), {})
                    if name not in by_type:
                        by_type[name] = BitMap64()
                    by_type[name].add(obj_id)
            scanned += len(heads)
            after = heads[-1].key
            await report(GcProgress("list", scanned))
            await self._pacer(len(heads))
        return candidates, pins, scanned

    async def _raise_generation(self, ref: Reference) -> Reference | None:
        """Raise until it is certain; `None` when the reference is gone."""
        while True:
            raised = ref._replace(generation=ref.generation + 1)
            try:
                if await self._backend.swap_ref(ref, raised):
                    return raised
            except OutcomeUnknown:
                # Not certain, so once more: from whatever the reference is by then.
                await self._clock.sleep(0.1)
            current = (await self._backend.fetch_refs([ref.key]))[0]
            if current is None:
                return None
            ref = current

    async def _mark(
        self,
        candidates: dict[Scope, dict[str, Any]],
        refs: list[Reference],
        pins: dict[Scope, list[ObjId]],
        beginning: _Beginning,
        report: Report,
    ) -> tuple[int, Doomed]:
        by_scope: dict[Scope, list[Reference]] = {}
        for ref in refs:
            by_scope.setdefault((ref.key.realm, ref.key.catalog), []).append(ref)
        marked = 0
        scopes: list[DoomedScope] = []
        for scope, by_type in sorted(candidates.items()):
            reach = Reach(self._store_of(*scope), pace=self._pacer)
            for ref in by_scope.get(scope, []):
                await self._mark_reference(reach, ref, beginning, report)
            for pin_id in pins.get(scope, []):
                await self._mark_pin(reach, pin_id)
            marked += len(reach.marked)
            await report(GcProgress("mark", marked))
            left = {name: ids - reach.marked for name, ids in by_type.items()}
            for name, ids in sorted(left.items()):
                if ids:
                    scopes.append(
                        DoomedScope(realm=scope[0], catalog=scope[1], type=name, ids=ids.serialize())
                    )
        return marked, Doomed(scopes=tuple(scopes))

    async def _mark_reference(
        self, reach: Reach, ref: Reference, beginning: _Beginning, report: Report
    ) -> None:
        await self._mark_history(reach, ref, beginning, report)
        for head in ref.recent:
            try:
                await reach.mark_commit(head)
            except MissingObject as error:
                if await self._is_remembered(ref, head):
                    self._refuse_missing(beginning, error)

    async def _mark_history(
        self, reach: Reach, ref: Reference, beginning: _Beginning, report: Report
    ) -> None:
        commit_id, replaced_us = ref.head, None
        while True:
            await report(GcProgress("mark", len(reach.marked)))
            if commit_id != ref.head and not await reach.exists(commit_id):
                return  # Collected history. A missing head is damage: marking it raises.
            try:
                record = await reach.mark_commit(commit_id)
            except MissingObject as error:
                is_promised = replaced_us is None or replaced_us >= beginning.promised_us
                if is_promised or await self._is_remembered(ref, commit_id):
                    self._refuse_missing(beginning, error)
                return  # Another collection, whose clock is ahead, is deleting it.
            # The first commit before the retained span is still the state at its beginning.
            if record is None or record.time_us < beginning.oldest_us or not record.parents:
                return
            commit_id, replaced_us = record.parents[0], record.time_us

    async def _is_remembered(self, ref: Reference, commit_id: ObjId) -> bool:
        """Whether the reference still leads to a commit, by now."""
        current = (await self._backend.fetch_refs([ref.key]))[0]
        return current is not None and commit_id in (current.head, *current.recent)

    def _refuse_missing(self, beginning: _Beginning, error: MissingObject) -> NoReturn:
        """Something that must be kept is not there: damage, unless this run is too old to know."""
        span_us = int((self._clock.monotonic_s() - beginning.at_s) * 1_000_000)
        if span_us < beginning.promised_us - beginning.oldest_us:
            raise error
        raise Unavailable(
            "The collection took so long that another one may have overtaken it",
            fix="Run it again.",
            took_s=span_us // 1_000_000,
        ) from error

    async def _mark_pin(self, reach: Reach, pin_id: ObjId) -> None:
        while (pin := await reach.store.fetch(PIN, pin_id)) is not None:
            if pin.value.until_us > self._clock.now_us():
                try:
                    await reach.mark_commit(pin.value.commit)
                except MissingObject as error:
                    # Its owner died between setting it too late and taking it back: it protects nothing.
                    _log.event("gc.pin_is_empty", level=WARNING, pin=pin_id, error=error)
                return
            try:
                if await reach.store.delete_if(PIN, pin):
                    return
            except OutcomeUnknown:
                continue
            # Not deleted: it was renewed at this moment, so look again.

    async def _save(self, doomed: Doomed) -> GcProgress:
        doomed_id = self._ids.next()
        system = self._store_of(SYSTEM_REALM, REALM_SCOPE)
        await system.write([NewObject(DOOMED, doomed_id, doomed)])
        return GcProgress("delete", 0, doomed_id)

    async def _delete(self, doomed: Doomed, progress: GcProgress, report: Report) -> int:
        done = 0
        for key_batch in doomed.batches(_DELETE_ROWS):
            done += len(key_batch)
            if done <= progress.done:
                continue  # Deleted before the run was interrupted.
            await self._pacer(len(key_batch))
            await report(GcProgress("delete", done - len(key_batch), progress.doomed))
            try:
                await self._backend.delete(key_batch)
            except OutcomeUnknown:
                await self._backend.delete(key_batch)  # Deleting twice is deleting.
        return done - progress.done
