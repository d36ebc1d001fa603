"""`system.runtime.queries`, `tasks` and `workers`: what goes on, as one user may see it.

Everybody sees their own statements, and nobody those of others; of statements over restricted tables no
numbers of a scan are told, because they tell how much is hidden.

A maintainer must not break: a statement of another principal or realm is in none of these tables.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from cynosure.query.coordinator.inline import InlineTable, inline_schema
from cynosure.query.coordinator.statement import ENDED, State, StatementInfo
from cynosure.query.engine import FragmentReport, RunningFragment, WorkerInfo

_QUERIES: Final = {
    "query_id": "string",
    "state": "string",
    "user": "string",
    "query": "string",
    "engine": "string",
    "reason": "string",
    "created": "timestamptz",
    "elapsed_ms": "long",
    "rows": "long",
    "fragments": "long",
    "fragments_done": "long",
    "error": "string",
}
_TASKS: Final = {
    "query_id": "string",
    "fragment_id": "string",
    "worker": "string",
    "attempt": "int",
    "state": "string",
    "elapsed_ms": "long",
    "rows": "long",
    "bytes": "long",
}
_WORKERS: Final = {
    "worker": "string",
    "state": "string",
    "cores": "int",
}


def queries_table(statements: Iterable[tuple[StatementInfo, str, str]]) -> InlineTable:
    """Statements with their user and redacted text."""
    rows: list[tuple[Any, ...]] = [
        (
            info.id,
            info.state.value,
            user,
            sql,
            info.engine,
            info.reason,
            info.created_us,
            info.elapsed_ms,
            info.rows,
            info.progress.fragments,
            info.progress.fragments_done,
            type(info.error).__name__ if info.error is not None else None,
        )
        for info, user, sql in statements
    ]
    return InlineTable("system.runtime.queries", inline_schema(_QUERIES), tuple(rows))


class StatementTasks(NamedTuple):
    """The fragments of a statement, as far as its user may know of them."""

    query_id: str
    state: State
    """Of the statement."""
    fragments: Iterable[FragmentReport | str]
    """A report of one that ended, or was tried; the id of one that was not."""
    running: Sequence[RunningFragment] | None
    """What is read now; None: its engine does not know."""


def tasks_table(statements: Iterable[StatementTasks]) -> InlineTable:
    """Fragments of statements: those that run by all of their readers, others by how they ended."""
    rows = [(each.query_id, *row) for each in statements for row in _task_rows(each)]
    return InlineTable("system.runtime.tasks", inline_schema(_TASKS), tuple(rows))


def _task_rows(tasks: StatementTasks) -> Iterator[tuple[Any, ...]]:
    running: dict[str, list[RunningFragment]] = {}
    for one in tasks.running or ():
        running.setdefault(one.fragment_id, []).append(one)
    for each in tasks.fragments:
        id_ = each if isinstance(each, str) else each.fragment_id
        for now in running.get(id_, ()):
            yield id_, now.worker, now.attempt, "RUNNING", now.elapsed_ms, now.rows, now.bytes
        if id_ in running:
            continue
        if isinstance(each, str):
            yield id_, None, None, _untold_state(tasks), None, None, None
        else:
            state = "FINISHED" if each.is_success else "FAILED"
            yield id_, each.worker or None, each.attempt, state, each.elapsed_ms, each.rows, each.bytes


def _untold_state(tasks: StatementTasks) -> str:
    """Of a fragment that nobody said anything of."""
    if tasks.state in ENDED:
        # Nobody wanted its rows any more: the statement had enough of them, or failed.
        return "CANCELED"
    is_read = tasks.running is None and tasks.state is State.RUNNING
    return "RUNNING" if is_read else "QUEUED"


def workers_table(workers: Sequence[WorkerInfo]) -> InlineTable:
    """Where scans run besides the gateway.

    Not how many fragments are read there, nor when it was heard of last: both are moved by anybody's scans,
    and a scan of which a predicate leaves no file is none. That would tell what hidden rows are like.
    """
    rows = tuple((each.name, "HEALTHY" if each.is_healthy else "UNHEALTHY", each.cores) for each in workers)
    return InlineTable("system.runtime.workers", inline_schema(_WORKERS), rows)
