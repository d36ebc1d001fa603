"""Dropping something with all it holds: what would go, whether that is meant, and how far it is.

Must not break: nothing is dropped before somebody said yes, on the terminal or with `--yes`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cynosure.cli.output import show_progress, tell
from cynosure.common.errors import BadInput, Conflict, CynosureError, NotFound
from cynosure.common.progress import Progress

if TYPE_CHECKING:
    from cynosure.client.drops import CascadePlan

Cascade = Annotated[bool, typer.Option("--cascade", help="With all it holds.")]
Purge = Annotated[
    bool, typer.Option("--purge", help="With --cascade: delete the files of its tables as well, for good.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --cascade: do not ask.")]

_LOOK_S: Final = 1.0
_MOST_SHOWN: Final = 20


def check_flags(*, is_cascade: bool, is_purging: bool) -> None:
    """Refuse flags that mean nothing alone."""
    if is_purging and not is_cascade:
        raise BadInput("What is empty has no files to purge", field="--purge", fix="Add --cascade.")


async def drop_with_all(
    what: str,
    plan: "Callable[[], Awaitable[CascadePlan]]",
    drop: Callable[[], Awaitable[None]],
    *,
    is_purging: bool,
    is_confirmed: bool,
    is_repeated: bool,
) -> "CascadePlan":
    """Show what would go, ask, drop it and show how far that is; what went.

    `is_repeated`: it may be gone because this very command was run before; the server knows by the key.
    """
    try:
        planned = await plan()
    except NotFound:
        if not is_repeated:
            raise
        from cynosure.client.drops import CascadePlan

        await drop()
        return CascadePlan()
    _require_free(planned)
    if not is_confirmed:
        _confirm(what, planned, is_purging=is_purging)
    dropping = asyncio.ensure_future(drop())
    with show_progress() as report:
        try:
            while not (await asyncio.wait({dropping}, timeout=_LOOK_S))[0]:
                with suppress(CynosureError):
                    # Only to be shown: whatever goes wrong is told by the request itself.
                    left = await plan()
                    done = max(0, planned.total - left.total)
                    report(Progress(f"Dropping {what}", done, planned.total))
        finally:
            dropping.cancel()
            await asyncio.wait({dropping})
    dropping.result()
    return planned


def describe_plan(plan: "CascadePlan") -> str:
    """What goes, in words."""
    parts = (
        (plan.namespaces, "namespace", "namespaces"),
        (plan.tables, "table", "tables"),
        (plan.generic_tables, "generic table", "generic tables"),
        (plan.views, "view", "views"),
        (plan.policies, "policy", "policies"),
    )
    words = [f"{number} {one if number == 1 else many}" for number, one, many in parts if number]
    return ", ".join(words) or "nothing else"


def _require_free(plan: "CascadePlan") -> None:
    if not plan.in_the_way:
        return
    for each in plan.in_the_way[:_MOST_SHOWN]:
        tell(f"  {each.kind} {'.'.join(each.path)}: {each.reason}")
    raise Conflict(
        "Some of it cannot be dropped, so nothing was",
        fix="See to what is listed above, and run this again.",
        in_the_way=len(plan.in_the_way),
    )


def _confirm(what: str, plan: "CascadePlan", *, is_purging: bool) -> None:
    files = " The files of its tables are deleted for good." if is_purging else ""
    tell(f"This drops {what} with {describe_plan(plan)}.{files}")
    if not sys.stdin.isatty():
        tell("Add --yes to do it.")
        raise typer.Exit(2)
    if not typer.confirm("Go on?", err=True):
        tell("Nothing was dropped.")
        raise typer.Exit(1)
