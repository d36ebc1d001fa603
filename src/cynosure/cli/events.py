"""`cynosure events`: what was done and what was refused.

A maintainer must not break: with `--follow` every event is shown once, also when answers fail in between.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Raw, Struct

from cynosure.cli.output import tell
from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

_PAGE = 1_000
_WAIT_S = 30
_RETRY_S = 2.0

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="What was done, and what was refused.",
    epilog="How long they are kept and where else they go: `cynosure settings reference`, auth.audit.",
)


@app.callback()
def events() -> None:
    """What was done, and what was refused."""


class _Target(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    change: str = ""
    before: str = ""
    details: dict[str, str] = {}


class _Event(Struct, frozen=True, rename="camel"):
    time: str
    kind: str
    operation: str = ""
    decision: str = "-"
    principal: str = ""
    actor: str = ""
    catalog: str = ""
    targets: tuple[_Target, ...] = ()
    targets_omitted: int = 0
    reason: str = ""
    missing: tuple[str, ...] = ()
    count: int = 1
    reference: str = ""
    sequence: int = 0
    details: dict[str, str] = {}


class _Page(Struct, frozen=True, rename="camel"):
    events: list[Raw]
    cursor: str
    has_more: bool


@app.command()
@connected
def tail(
    to: Remote,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens next.")] = False,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="A duration back from now (30m, 2d) or a time with its zone.")
    ] = "1h",
    until: Annotated[str | None, typer.Option(metavar="TIME", help="As --since; where to end.")] = None,
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Only what they did.")] = None,
    operation: Annotated[str | None, typer.Option(metavar="NAME", help="Such as create-table.")] = None,
    decision: Annotated[
        Literal["allowed", "denied"] | None, typer.Option(help="Only what was allowed, or denied.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what is about it; a namespace: and all below.")
    ] = None,
    catalog: Annotated[str | None, typer.Option(metavar="NAME", help="Only what is about it.")] = None,
) -> None:
    """Show what was done and what was refused, oldest first.

    With `--json` one object per line, as it happens.

    Example: `cynosure events tail --decision denied --since 1d`

    Example: `cynosure events tail --follow --catalog sales --json`
    """
    if follow and until is not None:
        raise BadInput("What ends cannot be followed", field="--until", fix="Leave out this or --follow.")
    given = {
        "since": _to_time(since, "--since"),
        "until": None if until is None else _to_time(until, "--until"),
        "principal": principal,
        "operation": operation,
        "decision": decision,
        "target": target,
        "catalog": catalog,
    }
    query = {name: value for name, value in given.items() if value is not None}
    show = _show_json if to.as_json else _show_line
    try:
        to.run(lambda server: _tail(server, query, show, is_following=follow))
    except BrokenPipeError:
        # `| head` has seen enough. What Python still wants to write at its end must go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _tail(
    server: "Server", query: dict[str, str], show: Callable[[Raw], None], *, is_following: bool
) -> None:
    import asyncio

    cursor: str | None = None
    wait_s = 0
    while True:
        asked = {**query, "limit": str(_PAGE), "wait": str(wait_s)}
        if cursor is not None:
            asked["cursor"] = cursor
        try:
            page = await server.management.read_events(asked, _Page, timeout_s=wait_s + 60.0)
        except Unavailable as error:
            if not is_following or cursor is None:
                raise
            # Not an end: the cursor knows where to go on when the server is back.
            tell(f"{error.message}; trying again.")
            await asyncio.sleep(_RETRY_S)
            continue
        for event in page.events:
            show(event)
        cursor = page.cursor
        if not page.has_more and not is_following:
            return
        wait_s = 0 if page.has_more else _WAIT_S


def _show_json(event: Raw) -> None:
    print(bytes(event).decode(), flush=True)


def _show_line(event: Raw) -> None:
    from msgspec.json import decode

    print(_printable(_describe(decode(event, type=_Event))), flush=True)


def _describe(event: _Event) -> str:
    who = f"{event.principal or '?'} through {event.actor}" if event.actor else event.principal or "?"
    words = [event.time, f"{event.decision:7}", who, event.operation]
    if event.kind == "gap":
        words = [event.time, "GAP    ", f"{event.reference} from {event.sequence}: {event.count} changes"]
    place = f"{event.catalog}/" if event.catalog else ""
    targets = [f"{place}{_describe_target(each)}" for each in event.targets]
    if event.targets_omitted:
        targets.append(f"and {event.targets_omitted} more")
    words.append(", ".join(targets) or place.rstrip("/"))
    if event.missing:
        words.append(f"(lacks {', '.join(event.missing)})")
    elif event.reason:
        words.append(f"({event.reason})")
    if event.kind == "query":
        said = event.details
        words.append(f"({said.get('outcome', '?')}, {said.get('rows', '?')} rows, {said.get('engine', '?')})")
        words.append(said.get("sql", ""))
    if event.kind == "authentication-failure" and event.count > 1:
        words.append(f"({event.count} times)")
    return "  ".join(word for word in words if word)


def _describe_target(target: _Target) -> str:
    name = f"{target.before} → {target.name}" if target.before else target.name
    details = ", ".join(f"{key}={value}" for key, value in target.details.items())
    return f"{name} [{details}]" if details else name or target.change


def _printable(line: str) -> str:
    """Names may come from strangers; nothing in them may act on the terminal."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)


def _to_time(text: str, flag: str) -> str:
    """A time as the server takes it."""
    from datetime import UTC, datetime

    from cynosure.common.clock import SystemClock
    from cynosure.common.quantities import parse_duration

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            at = datetime.fromtimestamp(SystemClock().now_us() / 1_000_000, UTC) - parse_duration(text)
        except (ValueError, OverflowError) as error:
            raise _not_a_time(text, flag) from error
    if at.tzinfo is None:
        raise _not_a_time(text, flag)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _not_a_time(text: str, flag: str) -> BadInput:
    return BadInput(
        "Not a time",
        field=flag,
        fix="Write a duration back from now, such as 30m or 2d, or a time with its zone: 2026-01-31T12:00Z.",
        got=text,
    )
