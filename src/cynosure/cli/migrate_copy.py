"""`cynosure migrate --copy`: how a copy is asked for, what it tells meanwhile and what came of it."""

import time
from typing import TYPE_CHECKING, Any, Final

import typer

from cynosure.cli.output import harmless, print_table, tell
from cynosure.common.errors import BadInput, Forbidden, NotFound
from cynosure.common.progress import Progress
from cynosure.common.quantities import format_bytes

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.migration import Choices, Moved, MovedObject
    from cynosure.common.progress import Report

_BETWEEN_S: Final = 1.0
"""Between two lines of progress."""
_LEFT: Final = "Grants and policies do not come along: make there what is to count."


def check_copy(into: str, *, keep_remote: bool, cancel: bool, writers_stopped: bool) -> None:
    """Refuse flags that mean nothing for a copy."""
    if not into:
        raise BadInput(
            "A copy goes into another catalog", field="--copy", fix="Say which, with --into CATALOG."
        )
    for flag, given in (
        ("--keep-remote", keep_remote),
        ("--cancel", cancel),
        ("--writers-stopped", writers_stopped),
    ):
        if given:
            raise BadInput("A copy changes nothing at the remote", field=flag, fix="Leave it out.")


def confirm_copy(catalog: str, into: str) -> None:
    """Ask before files are written."""
    tell(f"Tables and views of {catalog} are copied into {into}, with all their files and snapshots. {_LEFT}")
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(1)


class CopyWork:
    """What is done with the server."""

    def __init__(self, catalog: str, choices: "Choices", progress: "Report", *, is_dry: bool) -> None:
        self._catalog = catalog
        self._choices = choices
        self._progress = progress
        self._is_dry = is_dry
        self._told_at = 0.0
        self._seen = 0

    async def __call__(self, server: "Server") -> "Moved":
        """Copy, or only look."""
        await self._check(server)
        copying = server.copying(self._catalog, self._choices.into, self._note)
        return await (copying.survey if self._is_dry else copying.copy)(self._choices)

    async def _check(self, server: "Server") -> None:
        into = self._choices.into
        if into == self._catalog:
            raise BadInput(
                "A catalog cannot be copied into itself", field="--into", fix="Name another catalog."
            )
        try:
            found = await server.management.load_catalog(into)
        except (Forbidden, NotFound):
            # Who may not look at it may yet create tables in it; what is wrong is told then.
            return
        if found.type != "INTERNAL":
            raise BadInput(
                "The other catalog is not this server's own",
                field="--into",
                fix="Name one of type INTERNAL.",
                catalog=into,
            )

    def _note(self, path: tuple[str, ...], files: int, size_bytes: int) -> None:
        self._seen += not files
        now = time.monotonic()
        if now - self._told_at < _BETWEEN_S:
            return
        self._told_at = now
        if files:
            done = f"{files} files, {format_bytes(size_bytes)} copied"
            self._progress(Progress(f"{harmless('.'.join(path))}: {done}"))
        else:
            self._progress(Progress(f"{self._seen} looked at"))


def print_copied(moved: "Moved", choices: "Choices", *, is_dry: bool) -> None:
    """What became of each object that is worth a line, and of all together."""
    usual = ("copied",) if choices.tables else ("copied", "there")
    shown = [each for each in moved.objects if is_dry or each.outcome not in usual]
    if shown:
        print_table(("TYPE", "NAME", "OUTCOME", "REASON"), [_row(each) for each in shown])
    count, obstacles = len(moved.objects), len(moved.obstacles)
    copied = sum(each.outcome == "copied" for each in moved.objects)
    if is_dry:
        tell(f"{count} would be looked after, {obstacles} of them cannot be copied. Nothing was changed.")
        tell(_LEFT)
    elif moved.phase == "none":
        tell(f"Nothing was copied: {obstacles} objects cannot be. Mend that and run it again,")
        tell("or go on without them with --leave-behind.")
    elif moved.phase != "done":
        tell(f"{copied} objects were copied, {obstacles} were not. Mend that and run it again.")
    elif copied:
        tell(f"{moved.into} has copies now: {copied} objects were copied. {_LEFT}")
    elif not moved.objects:
        tell("There is nothing to copy.")
    elif any(each.outcome == "left-behind" for each in moved.objects):
        tell("Nothing was copied: all of it was left behind, or there before.")
    else:
        tell(f"{moved.into} got all of it before: nothing was left to do.")


def _row(each: "MovedObject") -> tuple[Any, ...]:
    return each.type, ".".join(each.path), each.outcome, each.reason or None
