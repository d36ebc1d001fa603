"""`cynosure migrate`: a federated catalog becomes one of ours, with its tables, views, grants and policies.

Or, with `--into`, some of its tables and views go into another catalog, and the rest stays federated; with
`--copy` they get files of their own there, and nothing changes at the remote (`migrate_copy.py`).

A maintainer must not break: whatever is not moved ends the command with 1, also with `--json`; and the same
command, run again, goes on, or says that all is done and ends with 0.
"""

from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from cynosure.cli.migrate_copy import CopyWork, check_copy, confirm_copy, print_copied
from cynosure.cli.names import split_name
from cynosure.cli.output import print_json, print_table, show_progress, tell
from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput
from cynosure.common.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cynosure.cli.transport import Server
    from cynosure.client.migration import Choices, MigrationState, Moved, MovedObject
    from cynosure.common.progress import Report

_TIMEOUT_S: Final = 300.0
"""For one step: a remote is asked several times for each object of a page."""
_DOING: Final = {
    "survey": "looked at",
    "moved": "moved before",
    "take": "taken or looked at",
    "settle": "taken or looked at",
    "give": "taken; the other catalog gets them",
    "release": "taken; the remote drops them",
    "cancel": "put back",
}
_LEFT: Final = "Grants do not come along: grant there what is to be allowed."
_NAME_PARTS: Final = 2
"""Of a table at the least."""
_USUAL: Final = ("ready", "taken", "given", "released")
_MOVED: Final = ("taken", "given", "released", "kept")


@connected
def migrate(
    to: Remote,
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="A federated catalog; to copy, any.")],
    *,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", metavar="NAMESPACE", help="Only what is in it. May be repeated."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME", help="Only this table or view. May be repeated."),
    ] = None,
    into: Annotated[
        str,
        typer.Option("--into", metavar="CATALOG", help="Another catalog of this server that gets them."),
    ] = "",
    copy: Annotated[
        bool,
        typer.Option(
            "--copy", help="With --into: copy them with their files, and leave the remote as it is."
        ),
    ] = False,
    leave_policies: Annotated[
        bool, typer.Option("--leave-policies", help="With --into: row filters and masks stay behind.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be moved, and what cannot be.")
    ] = False,
    keep_remote: Annotated[
        bool, typer.Option("--keep-remote", help="Leave tables at the remote, under other names.")
    ] = False,
    leave_behind: Annotated[
        bool, typer.Option("--leave-behind", help="Go on without what cannot be moved.")
    ] = False,
    writers_stopped: Annotated[
        bool, typer.Option("--writers-stopped", help="Nobody writes at the remote meanwhile (Glue).")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Give it up: everything gets its name back.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write what became of each object, as JSON."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Make a federated catalog one of ours: its tables and views are dropped at the remote and changed here.

    Files stay where they are; ids, grants and policies stay too. While it is moved, the catalog is read and
    not changed. Cut off anywhere, the same command goes on. With --into, tables go into another catalog
    instead, without grants and policies, and the rest stays federated. With --copy as well, they are copied:
    nothing changes at the remote, writers go on, and the copies have files of their own.

    Example: `cynosure migrate hive --dry-run`

    Example: `cynosure migrate hive --report moved.json`

    Example: `cynosure migrate hive --into lake --table eu.orders --table eu.items`

    Example: `cynosure migrate hive --into lake --copy --namespace eu`
    """
    from cynosure.client.migration import Choices

    if leave_policies and not into:
        raise BadInput("Policies stay with the tables", field="--leave-policies", fix="Leave it out.")
    if cancel and (dry_run or keep_remote or leave_behind):
        raise BadInput("Nothing is moved when it is given up", field="--cancel", fix="Give it alone.")
    if copy:
        check_copy(into, keep_remote=keep_remote, cancel=cancel, writers_stopped=writers_stopped)
    if report is not None:
        with _open_report(report, "a"):
            pass
    if not (dry_run or cancel or yes):
        (confirm_copy if copy else _confirm)(catalog, into)
    choices = Choices(
        keep_remote,
        leave_behind,
        writers_stopped,
        tuple(split_name(each, field="--namespace") for each in namespace or ()),
        tuple(_split_table(each) for each in table or ()),
        into,
        leave_policies,
    )
    with show_progress() as progress:
        if copy:
            moved = to.run(CopyWork(catalog, choices, progress, is_dry=dry_run))
        else:
            moved = to.run(_Work(catalog, choices, progress, is_dry=dry_run, is_cancelling=cancel))
    if to.as_json:
        print_json(moved)
    elif copy:
        print_copied(moved, choices, is_dry=dry_run)
    else:
        _print_moved(catalog, moved, choices, is_dry=dry_run, is_cancelling=cancel)
    # Last: what was moved is told in any case.
    if report is not None:
        _write_report(report, moved)
    wanted = "none" if dry_run or cancel else "done"
    if moved.obstacles or (moved.phase != wanted and not dry_run):
        raise typer.Exit(1)


class _Work:
    """What is done with the server."""

    def __init__(
        self, catalog: str, choices: "Choices", progress: "Report", *, is_dry: bool, is_cancelling: bool
    ) -> None:
        self._catalog = catalog
        self._choices = choices
        self._progress = progress
        self._is_dry = is_dry
        self._is_cancelling = is_cancelling

    async def __call__(self, server: "Server") -> "Moved":
        from cynosure.client.migration import Migration, MigrationState

        async def ask(step: "Mapping[str, Any]") -> "MigrationState":
            return await server.management.migrate(self._catalog, step, MigrationState, timeout_s=_TIMEOUT_S)

        migration = Migration(ask, self._note)
        if self._is_dry:
            return await migration.survey(self._choices)
        return await migration.cancel() if self._is_cancelling else await migration.move(self._choices)

    def _note(self, doing: str, seen: int) -> None:
        self._progress(Progress(f"{seen} {_DOING.get(doing, doing)}"))


def _split_table(text: str) -> tuple[str, ...]:
    path = split_name(text, field="--table")
    if len(path) < _NAME_PARTS:
        raise BadInput(
            "A table is in a namespace", field="--table", fix="Write it as in eu.orders.", name=text
        )
    return path


def _confirm(catalog: str, into: str) -> None:
    tell(f"Tables and views of {catalog} are taken from its remote: who writes them there is refused.")
    if into:
        tell(f"{into} gets them. {_LEFT}")
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(1)


def _write_report(file: Path, moved: "Moved") -> None:
    """A list with one line for each object."""
    import msgspec

    lines = ",\n".join(msgspec.json.encode(each).decode() for each in moved.objects)
    with _open_report(file, "w") as to:
        to.write(f"[\n{lines}\n]\n" if lines else "[]\n")


@contextmanager
def _open_report(file: Path, mode: str) -> "Iterator[IO[str]]":
    """Tried before anything is moved: a report that cannot be written is seldom a surprise at the end."""
    try:
        with file.open(mode, encoding="utf-8") as to:
            yield to
    except OSError as error:
        raise BadInput(
            "The file cannot be written",
            field="--report",
            fix="Name a file in a directory that you can write to and that has room.",
            reason=error.strerror or type(error).__name__,
        ) from error


def _print_moved(
    catalog: str, moved: "Moved", choices: "Choices", *, is_dry: bool, is_cancelling: bool
) -> None:
    # What was moved before is told one by one to who named it so.
    usual = _USUAL if choices.tables else (*_USUAL, "there")
    shown = [each for each in moved.objects if is_dry or each.outcome not in usual]
    if shown:
        print_table(("TYPE", "NAME", "OUTCOME", "REASON"), [_row(each) for each in shown])
    count, obstacles = len(moved.objects), len(moved.obstacles)
    if is_dry:
        tell(f"{count} would be looked after, {obstacles} of them cannot be moved. Nothing was changed.")
        if moved.into is not None:
            tell(_LEFT)
    elif moved.phase == "done":
        _tell_done(catalog, moved)
    elif is_cancelling and moved.phase == "none":
        tell(f"{catalog} is as it was.")
    else:
        tell(f"{catalog} is not moved: {obstacles} objects cannot be. Mend that and run it again,")
        tell("go on without them with --leave-behind, or give it up with --cancel.")


def _tell_done(catalog: str, moved: "Moved") -> None:
    if any(each.outcome in _MOVED for each in moved.objects):
        end = f"{len(moved.objects)} objects were looked after."
        if moved.into is None:
            tell(f"{catalog} is a catalog of this server now. {end}")
        else:
            tell(f"{moved.into} has them now. {end} {_LEFT}")
    elif moved.obstacles:
        tell(f"{catalog} was moved before, and not what is told above.")
    elif moved.into is None:
        tell(f"{catalog} is a catalog of this server already: nothing was left to do.")
    else:
        tell(f"{moved.into} got all of it before: nothing was left to do.")


def _row(each: "MovedObject") -> tuple[Any, ...]:
    return each.type, ".".join(each.path), each.outcome, each.reason or None
