"""`cynosure catalogs check`: does the storage of a catalog work?

A maintainer must not break: a step that failed ends the command with 1, also with `--json`.
"""

from typing import Annotated

import typer
from msgspec import Struct

from cynosure.cli.output import print_json, print_table, tell
from cynosure.cli.remote import Remote, connected

_TIMEOUT_S = 100.0
"""Longer than a server lets a request take."""


class Step(Struct, frozen=True, rename="camel"):
    """One thing that the server tried."""

    name: str
    location: str
    outcome: str
    duration_ms: int = 0
    message: str = ""
    fix: str = ""
    details: dict[str, str] = {}


class Check(Struct, frozen=True, rename="camel"):
    """The server's answer."""

    catalog: str
    storage_type: str
    ok: bool
    steps: tuple[Step, ...] = ()


@connected
def check(
    to: Remote, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the catalog.")]
) -> None:
    """Try whether the storage of a catalog works, for the server and for the clients it gives access to.

    In every allowed location, files of the check's own are written, read, listed and deleted. Credentials for
    clients are made and held against the store: they must open their own place and no other. Nothing is left.

    Example: `cynosure catalogs check lake`
    """
    found = to.run(lambda server: server.management.check_storage(name, Check, timeout_s=_TIMEOUT_S))
    if to.as_json:
        print_json(found)
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _print(found: Check) -> None:
    rows = [
        (each.location, each.name, each.outcome.upper() if each.outcome == "failed" else each.outcome, each)
        for each in found.steps
    ]
    print_table(
        ("LOCATION", "STEP", "OUTCOME", "MS", "WHY"),
        [
            (*shown, "" if step.outcome == "skipped" else step.duration_ms, _why(step))
            for *shown, step in rows
        ],
    )
    for fix in dict.fromkeys(each.fix for each in found.steps if each.outcome == "failed" and each.fix):
        tell(f"Fix: {fix}")


def _why(step: Step) -> str:
    details = ", ".join(f"{name}={value}" for name, value in step.details.items())
    return f"{step.message} ({details})" if details else step.message
