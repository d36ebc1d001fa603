"""What was ordered for a table and what became of it: stored per table and kind of task.

The index `upkeep` of the reference `reports` has it, apart from what commits to tables contend for: the
table's stable id, then the kind of task.

Must not break: a stored struct gets new fields with defaults only, and what is not known of a task that may
be under way counts as under way.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import reports_committer
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

INDEX: Final = "upkeep"
MOST_RUNS: Final = 10
"""Of one kind that are kept for a table."""
_TEXT_CHARS: Final = 500


class Measured(Struct, frozen=True, omit_defaults=True):
    """A table before and after a task, as far as the task has told."""

    files_before: int | None = None
    files_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None


class Run(Struct, frozen=True, omit_defaults=True):
    """One task that was ordered."""

    task_id: str
    ordered_us: int
    slot_us: int = 0
    """When it was due; 0 for one that somebody ordered."""
    ordered_by: str = ""
    """Principal; empty for the schedule."""
    snapshot_id: int | None = None
    """The table's current snapshot when it was ordered."""
    outcome: str = ""
    """Empty while it is under way; then `SUCCESS`, `FAILURE`, or `LOST` when the service does not know it."""
    ended_us: int = 0
    snapshot_after: int | None = None
    """The table's current snapshot when the task was done, if it was and has said so."""
    files_deleted: int = 0
    bytes_deleted: int = 0
    measured: Measured = Measured()
    text: str = ""
    """What the task says of itself."""

    @property
    def is_under_way(self) -> bool:
        """Whether nobody has seen its end."""
        return not self.outcome


class Looked(Struct, frozen=True):
    """That a table was looked at and nothing was worth doing."""

    at_us: int
    snapshot_id: int | None
    text: str


class Upkeep(Stored, frozen=True, kw_only=True):
    """One kind of maintenance of one table."""

    table_id: ObjId
    task_type: TaskType
    path: tuple[str, ...]
    """What the table was called when it was last written about."""
    runs: tuple[Run, ...] = ()
    """Newest first."""
    looked: Looked | None = None
    """Since the newest run."""

    @property
    def last(self) -> Run | None:
        """The newest run."""
        return self.runs[0] if self.runs else None

    @property
    def touched_us(self) -> int:
        """When anything was last written about it."""
        run = self.last
        at_us = 0 if run is None else max(run.ordered_us, run.ended_us)
        return at_us if self.looked is None else max(at_us, self.looked.at_us)


UPKEEP = struct_type("upkeep", Upkeep)
Known = dict[tuple[ObjId, TaskType], Upkeep]


def upkeep_key(table_id: ObjId, task_type: TaskType) -> bytes:
    """Key of one kind of maintenance of a table."""
    return encode_id_key(table_id) + task_type.encode()


async def load_known(catalog: OpenCatalog) -> Known:
    """All that is known of a catalog's tables."""
    view = (await reports_committer(catalog).read()).state
    entries = await scan_all(view, INDEX, b"")
    found = await load_entries(view, [value for _, value in entries])
    return {(each.table_id, each.task_type): each for each in found}


async def load_entries(view: View, values: list[bytes]) -> list[Upkeep]:
    """The objects of some entries."""
    return await view.load_many(UPKEEP, [ObjRef.unpack(value).id for value in values]) if values else []


async def find_upkeep(view: View, table_id: ObjId, task_type: TaskType) -> Upkeep | None:
    """What is known of one kind of maintenance of a table."""
    value = await view.find(INDEX, upkeep_key(table_id, task_type))
    return None if value is None else (await load_entries(view, [value]))[0]


def with_run(upkeep: Upkeep, run: Run) -> Upkeep:
    """With one more task; as it is when it has that task already."""
    if any(each.task_id == run.task_id for each in upkeep.runs):
        return upkeep
    return replace(upkeep, runs=(run, *upkeep.runs)[:MOST_RUNS], looked=None)


def with_end(upkeep: Upkeep, ended: Run) -> Upkeep:
    """With the end of a task; ends that are known stay."""
    runs = tuple(
        ended if each.task_id == ended.task_id and each.is_under_way else each for each in upkeep.runs
    )
    return replace(upkeep, runs=runs)


def with_looked(upkeep: Upkeep, looked: Looked) -> Upkeep:
    """With the note that it was looked at."""
    return replace(upkeep, looked=replace(looked, text=looked.text[:_TEXT_CHARS]))


def end_of(run: Run, details: TaskDetails | None, *, now_us: int) -> Run | None:
    """The run with its end, if it has ended."""
    if details is None:
        return replace(run, outcome="LOST", ended_us=now_us, text="The delegation service has no such task.")
    if not details.status.is_terminal:
        return None
    result = details.execution_result
    return replace(
        run,
        outcome=str(details.status),
        ended_us=now_us,
        snapshot_after=_snapshot_of(details),
        files_deleted=result.files_deleted,
        bytes_deleted=result.bytes_deleted,
        measured=Measured(**{name: _number(result.details.get(name)) for name in _MEASURES}),
        text=(details.result_summary or "")[:_TEXT_CHARS],
    )


_MEASURES: Final = Measured.__struct_fields__


def _snapshot_of(details: TaskDetails) -> int | None:
    said = details.execution_result.details.get("snapshot_id")
    if details.status is not TaskStatus.SUCCESS or not isinstance(said, int | str):
        return None
    text = str(said)
    return int(text) if text.isascii() and text.lstrip("-").isdigit() else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def changes_of(
    catalog: OpenCatalog, written: Iterable[Upkeep]
) -> tuple[dict[bytes, bytes | None], list[NewObject]]:
    """What to put into the index and the store so that these are what is known."""
    ids = catalog.shared.persistence.ids
    changes: dict[bytes, bytes | None] = {}
    objects: list[NewObject] = []
    for each in written:
        made = NewObject(UPKEEP, ids.next(), each)
        objects.append(made)
        changes[upkeep_key(each.table_id, each.task_type)] = ObjRef(made.id, UPKEEP.name).pack()
    return changes, objects
