"""Operator commands on the store, `store.*`: look at it, go back in it, keep it clean.

A *target* names a reference: `REALM/REFERENCE` for a realm's own (`default/catalogs`), or
`REALM/CATALOG/REFERENCE` for a catalog's (`default/123/main`).

A maintainer must not break: parameters and results are read by a command line of another version;
fields are only ever added, with defaults.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, structs

from cynosure.api.operator import OperatorCommand
from cynosure.catalog.consistency import find_disagreements
from cynosure.common.errors import BadInput, Conflict, CynosureError
from cynosure.common.progress import Progress, Report
from cynosure.persistence.commit import Committed, Committer, State
from cynosure.persistence.gc.collect import GcProgress
from cynosure.persistence.history.check import CheckReport, check_commit, check_reference
from cynosure.persistence.history.compare import compare
from cynosure.persistence.history.log import state_at_commit, state_at_time, walk_log
from cynosure.persistence.history.reset import reset_to_recent
from cynosure.persistence.history.restore import restore
from cynosure.persistence.index import decode_id_key, decode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.maintenance import describe, gc_task
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import INDEXES, target_of
from cynosure.persistence.spi import REALM_SCOPE, CatalogId, ObjId, RealmId, Reference, RefKey

OpenStore = Callable[[bool], AbstractAsyncContextManager[Persistence]]
"""Opens the store, or hands out the one that is open. The argument: initialise it if it is empty."""


class InitParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `store.init`."""


class StatusParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `store.status`."""

    heads: bool = False
    """Also list recent heads and whether each is complete."""


class TargetParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For commands on one reference."""

    target: str
    limit: int = 20
    before: str = ""
    """Commit id or time; for `store.diff` the older state."""
    after: str = ""
    """Commit id or time; empty is the current state."""


class RestoreParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `store.restore`."""

    target: str
    to: str
    revive_rights: bool = False
    principal: str = "operator"


class GcParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `store.gc`."""

    dry_run: bool = False


class ResetParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `store.reset`."""

    target: str
    head: int


class HeadInfo(Struct, frozen=True):
    """A recent head."""

    id: int
    problems: int


class RefInfo(Struct, frozen=True):
    """One reference."""

    target: str
    head: int
    generation: int
    sequence: int
    time: str | None
    recent: list[HeadInfo] = []


class LeaseInfo(Struct, frozen=True):
    """One leased node id."""

    node: int
    owner: str
    until: str


class TaskInfo(Struct, frozen=True):
    """One coordinated task."""

    name: str
    state: str
    next_due: str | None
    result: str
    error: str


class StoreStatus(Struct, frozen=True):
    """The whole store at a glance."""

    id: str
    layout: int
    created: str
    references: list[RefInfo]
    leases: list[LeaseInfo]
    tasks: list[TaskInfo]
    cache_bytes: int


class LogLine(Struct, frozen=True):
    """One commit."""

    id: int
    sequence: int
    time: str
    requests: list[str]


class DiffLine(Struct, frozen=True):
    """One entry that differs."""

    index: str
    key: str
    before: str | None
    after: str | None


class Summary(Struct, frozen=True):
    """One line about what was done."""

    text: str


def store_commands(open_store: OpenStore) -> list[OperatorCommand[Struct]]:
    """The commands, on a store that `open_store` gives."""
    commands = _Commands(open_store)
    listed: list[tuple[str, type[Struct], object, str]] = [
        ("store.init", InitParams, commands.init, "Make an empty store ready"),
        ("store.status", StatusParams, commands.status, "References, leases and tasks of the store"),
        ("store.log", TargetParams, commands.log, "Commits of a reference, newest first"),
        ("store.diff", TargetParams, commands.diff, "What changed between two states of a reference"),
        ("store.restore", RestoreParams, commands.restore, "Make an earlier state current, as a new commit"),
        ("store.gc", GcParams, commands.gc, "Collect garbage"),
        ("store.check", InitParams, commands.check, "Prove that everything reachable is there"),
        ("store.reset", ResetParams, commands.reset, "After a disaster: move a reference to a recent head"),
    ]
    return [OperatorCommand(name, params, run, summary) for name, params, run, summary in listed]  # type: ignore[arg-type]


class _Commands:
    def __init__(self, open_store: OpenStore) -> None:
        self._open = open_store

    async def init(self, params: InitParams, report: Report) -> StoreStatus:
        async with self._open(True) as persistence:
            return await _status(persistence, with_heads=False)

    async def status(self, params: StatusParams, report: Report) -> StoreStatus:
        async with self._open(False) as persistence:
            return await _status(persistence, with_heads=params.heads)

    async def log(self, params: TargetParams, report: Report) -> list[LogLine]:
        if params.limit < 1:
            raise BadInput("The limit must be positive", field="limit", fix="Ask for at least one commit.")
        async with self._open(False) as persistence:
            committer = persistence.committer(parse_target(params.target))
            state = await _state(committer, params.after)
            lines: list[LogLine] = []
            async for entry in walk_log(committer.store, state.commit_id):
                requests = [f"{each.principal} {each.operation}" for each in entry.record.requests]
                lines.append(LogLine(entry.id, entry.record.sequence, _time(entry.record.time_us), requests))
                if len(lines) == params.limit:
                    break
            return lines

    async def diff(self, params: TargetParams, report: Report) -> list[DiffLine]:
        async with self._open(False) as persistence:
            key = parse_target(params.target)
            committer = persistence.committer(key)
            older, newer = await _state(committer, params.before), await _state(committer, params.after)
            lines: list[DiffLine] = []
            async for each in compare(older, newer):
                holds = INDEXES[key.name].get(each.index, "bytes")
                before, after = _value(each.before, holds), _value(each.after, holds)
                lines.append(DiffLine(each.index, _name(each.key), before, after))
                if len(lines) == params.limit:
                    break
            return lines

    async def restore(self, params: RestoreParams, report: Report) -> Summary:
        async with self._open(False) as persistence:
            committer = persistence.committer(parse_target(params.target))
            target = await _state(committer, params.to)
            report(Progress(f"restoring commit {target.commit_id}"))
            outcome = await restore(
                committer,
                target.commit_id,
                principal=params.principal,
                request_id="",
                clock=persistence.clock,
                retention=persistence.settings.gc.history_retention,
                revive_rights=params.revive_rights,
            )
            assert isinstance(outcome, Committed)  # noqa: S101 - the request has no idempotency key
            return Summary(f"{outcome.result} entries restored in commit {outcome.commit_id}")

    async def gc(self, params: GcParams, report: Report) -> Summary:
        def watch(progress: GcProgress) -> None:
            report(Progress(f"garbage collection: {progress.phase}", progress.done))

        async with self._open(False) as persistence:
            if params.dry_run:

                async def follow(progress: GcProgress) -> None:
                    watch(progress)

                return Summary(describe(await persistence.collector().run(is_dry_run=True, report=follow)))
            record = await persistence.tasks.run_now(gc_task(persistence, watch=watch))
            if record.outcome != "succeeded":
                raise Conflict(
                    "The collection did not finish",
                    fix="See the reason; a later run goes on where it stopped.",
                    reason=record.text,
                )
            return Summary(record.text)

    async def check(self, params: InitParams, report: Report) -> list[CheckReport]:
        async with self._open(False) as persistence:
            refs = await persistence.backend.list_refs()
            reports: list[CheckReport] = []
            for done, ref in enumerate(refs):
                report(Progress(f"checking {target_of(ref.key)}", done, len(refs)))
                store = persistence.store(ref.key.realm, ref.key.catalog)
                found = await check_reference(store, ref)
                if ref.key.name == "main" and not found.problems:
                    state = await State.load(store, ref.head)
                    found = structs.replace(found, problems=tuple(await find_disagreements(state)))
                reports.append(found)
            return reports

    async def reset(self, params: ResetParams, report: Report) -> Summary:
        async with self._open(False) as persistence:
            key = parse_target(params.target)
            ref = await persistence.heads.load(key)
            store = persistence.store(key.realm, key.catalog)
            moved = await reset_to_recent(persistence.backend, store, ref, ObjId(params.head))
            return Summary(f"{target_of(key)} is at commit {moved.head} again, generation {moved.generation}")


async def _status(persistence: Persistence, *, with_heads: bool) -> StoreStatus:
    refs = [await _ref_info(persistence, ref, with_heads) for ref in await persistence.backend.list_refs()]
    leases = [
        LeaseInfo(lease.node, str(lease.owner), _time(lease.leased_until_us))
        for lease in await persistence.leases.list()
        if lease.is_leased
    ]
    tasks = [
        TaskInfo(task.name, task.state, _time(task.next_due_us), task.result, task.error)
        for task in await persistence.tasks.list()
    ]
    info = persistence.info
    return StoreStatus(
        info.id, info.layout, _time(info.created_us), refs, leases, tasks, persistence.cache.weight_bytes
    )


async def _ref_info(persistence: Persistence, ref: Reference, with_heads: bool) -> RefInfo:
    store = persistence.store(ref.key.realm, ref.key.catalog)
    recent: list[HeadInfo] = []
    if with_heads:
        recent = [HeadInfo(head, len(await check_commit(store, head))) for head in ref.recent]
    record = (await State.load(store, ref.head)).commit.record
    time = _time(record.time_us) if record.time_us else None
    return RefInfo(target_of(ref.key), ref.head, ref.generation, record.sequence, time, recent)


async def _state(committer: Committer, point: str) -> State:
    """The state at a commit id or ISO time; the current one when empty."""
    current = (await committer.read()).state
    if not point:
        return current
    if point.isdigit():
        if ObjId(int(point)) == current.commit_id:
            return current
        return await state_at_commit(committer.store, current.commit_id, ObjId(int(point)))
    try:
        time = datetime.fromisoformat(point)
    except ValueError as error:
        raise BadInput(
            "Neither a commit id nor a time",
            field="commit",
            fix="Give a number from 'cynosure store log', or a time such as 2026-01-31T12:00:00+00:00.",
            value=point,
        ) from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return await state_at_time(committer.store, current.commit_id, int(time.timestamp() * 1_000_000))


def parse_target(target: str) -> RefKey:
    """The reference that an operator named."""
    parts = target.split("/")
    if len(parts) == 2:
        parts.insert(1, REALM_SCOPE)
    if len(parts) != 3 or not all(parts) or parts[2] not in INDEXES:
        raise BadInput(
            "Not a reference",
            field="target",
            fix="Give REALM/REFERENCE or REALM/CATALOG/REFERENCE; 'cynosure store status' lists them.",
            target=target,
        )
    return RefKey(RealmId(parts[0]), CatalogId(parts[1]), parts[2])


_PAIR_BYTES: Final = 19
"""Of keys of grants, assignments and mappings."""


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="milliseconds")


def _name(key: bytes) -> str:
    """A key or value for people: a name, an id, a letter and two ids, or else its bytes."""
    with suppress(CynosureError):
        if (name := "/".join(decode_key(key))).isprintable():
            return name
    with suppress(CynosureError):
        if len(key) == _PAIR_BYTES:
            return f"{chr(key[0])}/{decode_id_key(key[1:10])}/{decode_id_key(key[10:])}"
        return str(decode_id_key(key))
    return key.hex()


def _value(value: bytes | None, holds: str) -> str | None:
    if value is None:
        return None
    if holds == "objects":
        ref = ObjRef.unpack(value)
        return f"{ref.type} {ref.id}"
    return _name(value)
