"""`cynosure tasks …`: long work, such as purges and maintenance: how far it is, and what to do about it."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from cynosure.cli.names import format_size
from cynosure.cli.output import print_fields, print_json, print_table, show_progress, tell
from cynosure.cli.remote import Remote, connected
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput, Unavailable
from cynosure.common.progress import Progress

if TYPE_CHECKING:
    from datetime import datetime

    from cynosure.cli.transport import Server
    from cynosure.common.delegated.record import TaskDetails
    from cynosure.common.progress import Report

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Long work: purges and maintenance of tables.",
    epilog="A task is in one of the states SUBMITTED, ACQUIRING_RESOURCES, RUNNING, RETRY_SCHEDULED, SUCCESS "
    "and FAILURE.",
)

TaskId = Annotated[str, typer.Argument(metavar="ID", help="Of the task, as lists show it.")]
_LOOK_S: Final = 1.0


@app.command("list")
@connected
def list_all(
    to: Remote,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATE", help="Only in this state.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only of this kind, such as TABLE_PURGE.")
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="Only about this catalog. Needed by who manages it and not the whole realm.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")] = 100,
) -> None:
    """List tasks, the newest first.

    Example: `cynosure tasks list --status FAILURE`

    Example: `cynosure tasks list --catalog lake --type TABLE_PURGE`
    """
    found = to.run(
        lambda server: server.tasks().list_newest(limit, status=status, kind=kind, catalog=catalog)
    )
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("TASK", "TYPE", "STATE", "TABLE", "ATTEMPT", "SINCE", "RESULT"),
        [
            (
                each.task_id,
                each.task_type,
                each.status,
                each.table,
                each.attempt_count,
                _time(each.last_status_change_ts),
                each.result_summary,
            )
            for each in found
        ],
    )


@app.command()
@connected
def show(
    to: Remote,
    task: TaskId,
    history: Annotated[bool, typer.Option("--history", help="All its versions, the oldest first.")] = False,
) -> None:
    """Show a task.

    Example: `cynosure tasks show 0e1f… --history`
    """
    if history:
        _show_history(to, task)
        return
    found = to.run(lambda server: server.tasks().load(task))
    if to.as_json:
        print_json(found)
        return
    result = found.execution_result
    print_fields(
        {
            "task": found.task_id,
            "type": found.task_type,
            "table": found.table,
            "state": found.status,
            "phase": _phase(found),
            "attempt": found.attempt_count,
            "worker": found.worker,
            "received": _time(found.received_timestamp),
            "since": _time(found.last_status_change_ts),
            "next run": _time(found.next_scheduled_run_ts),
            "files deleted": result.files_deleted or None,
            "bytes deleted": format_size(result.bytes_deleted) if result.bytes_deleted else None,
            **{f"  {name}": value for name, value in result.details.items()},
            "result": found.result_summary,
            "error": found.error_code,
            "details": found.result_extended,
        }
    )


def _show_history(to: Remote, task: str) -> None:
    versions = to.run(lambda server: server.tasks().load_history(task))
    if to.as_json:
        print_json(versions)
        return
    print_table(
        ("VERSION", "STATE", "SINCE", "ATTEMPT", "WORKER", "RESULT"),
        [
            (
                each.version,
                each.status,
                _time(each.last_status_change_ts),
                each.attempt_count,
                each.worker,
                each.result_summary,
            )
            for each in versions
        ],
    )


@app.command()
@connected
def watch(
    to: Remote,
    task: TaskId,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.05, help="How often to look.")
    ] = _LOOK_S,
) -> None:
    """Follow a task until it ends: exit code 0 for success, 1 for failure.

    Example: `cynosure tasks watch 0e1f…`
    """
    show_until_end(to, task, interval_s=interval)


def show_until_end(to: Remote, task: str, *, interval_s: float = _LOOK_S) -> None:
    """Follow a task until it ends, and say what became of it; whoever called ends with 1 for a failure."""
    with show_progress() as report:
        ended = to.run(lambda server: _follow(server, task, report, interval_s))
    if to.as_json:
        print_json(ended)
    else:
        result = ended.execution_result
        files = (
            f", {result.files_deleted} files, {format_size(result.bytes_deleted)}"
            if result.files_deleted
            else ""
        )
        print(f"{ended.status}{files}")
        if ended.result_summary:
            tell(ended.result_summary)
    if ended.status != "SUCCESS":
        raise typer.Exit(1)


async def _follow(server: "Server", task: str, report: "Report", interval_s: float) -> "TaskDetails":
    import asyncio

    last: Progress | None = None
    is_known = False
    while True:
        try:
            found = await server.tasks().load(task)
        except Unavailable as error:
            if not is_known:
                raise
            # Not an end: the task goes on without us.
            tell(f"{error.message}; looking again.")
            await asyncio.sleep(interval_s)
            continue
        is_known = True
        progress = _progress(found)
        if progress != last:
            report(progress)
            last = progress
        if found.status.is_terminal:
            return found
        await asyncio.sleep(interval_s)


@app.command()
@connected
def retry(to: Remote, task: TaskId) -> None:
    """Try a task that failed, or waits for its next attempt, again now.

    Example: `cynosure tasks retry 0e1f…`
    """
    found = to.run(lambda server: server.tasks().retry(task))
    print_done(f"Task {found.task_id} is {found.status}.", found, to.as_json)


@app.command()
@connected
def cancel(
    to: Remote,
    task: TaskId,
    confirm: Annotated[
        bool, typer.Option("--yes", "-y", help="Really: what it has done already stays done.")
    ] = False,
) -> None:
    """Give a task up that has not ended. Files that are deleted stay deleted.

    Example: `cynosure tasks cancel 0e1f… --yes`
    """
    if not confirm:
        raise BadInput(
            "What the task has done already stays done", field="--yes", fix="Add --yes to give it up."
        )
    found = to.run(lambda server: server.tasks().cancel(task))
    print_done(f"Task {found.task_id} is {found.status}.", found, to.as_json)


def _progress(task: "TaskDetails") -> Progress:
    words = [str(task.status)]
    if (phase := _phase(task)) is not None:
        words.append(phase)
    if task.attempt_count > 1:
        words.append(f"attempt {task.attempt_count}")
    if task.execution_result.bytes_deleted:
        words.append(format_size(task.execution_result.bytes_deleted))
    if task.result_summary and not task.status.is_terminal:
        words.append(task.result_summary)
    now = task.progress
    return Progress(", ".join(words), None if now is None else now.done, None if now is None else now.total)


def _phase(task: "TaskDetails") -> str | None:
    if task.progress is None:
        return None
    unit = "" if task.progress.unit == "files" else f" ({task.progress.unit})"
    return f"{task.progress.phase}{unit}"


def _time(at: "datetime | None") -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")
