"""`cynosure federation …`: remotes of federated catalogs, and whether what is known of them is still so.

A maintainer must not break: a remote that does not answer, and a difference that was not mended, end the
command with 1, also with `--json`.
"""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Struct

from cynosure.cli.output import print_json, print_table, show_progress, tell
from cynosure.cli.remote import Remote, connected
from cynosure.cli.remote_states import RemoteState, tell_troubles
from cynosure.common.errors import BadInput
from cynosure.common.progress import Progress

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.common.progress import Report

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Remotes of federated catalogs: how they are, and what is different.",
)

_TIMEOUT_S: Final = 300.0
"""For one page: a remote is asked for each of its entries."""


class Grant(Struct, frozen=True, rename="camel"):
    """What a catalog role holds on something that is gone."""

    role: str
    privileges: tuple[str, ...] = ()


class Difference(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Something that the remote has otherwise."""

    type: str
    path: tuple[str, ...]
    difference: str
    moved_to: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    policies: tuple[str, ...] = ()
    mended: bool = False


class Waiting(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Row filters and masks that wait for a table or namespace of the remote."""

    type: str
    path: tuple[str, ...] = ()
    uuid: str = ""
    policies: tuple[str, ...] = ()


class Page(Struct, frozen=True, rename="camel"):
    """The server's answer to one page of a comparison."""

    checked: int
    differences: tuple[Difference, ...] = ()
    next_page_token: str | None = None
    waiting: tuple[Waiting, ...] = ()
    forgotten: int = 0
    kept: int = 0


class WaitingLeft(Struct, frozen=True, rename="camel"):
    """What waits; or how much of it was given up."""

    catalog: str
    waiting: list[Waiting]
    forgotten: int = 0
    kept: int = 0


class Comparison(Struct, frozen=True, rename="camel"):
    """All pages together."""

    catalog: str
    checked: int
    differences: list[Difference]


@app.command()
@connected
def status(
    to: Remote,
    catalog: Annotated[
        str | None, typer.Argument(metavar="[CATALOG]", help="Only the remote of this one.")
    ] = None,
) -> None:
    """Ask the remotes of federated catalogs whether they are well, and show how they were lately.

    Example: `cynosure federation status`

    Example: `cynosure federation status hive`
    """

    async def work(server: "Server") -> list[RemoteState]:
        names = [catalog] if catalog is not None else await _find_federated(server)
        return [await server.management.load_remote_status(name, RemoteState) for name in names]

    found = to.run(work)
    if to.as_json:
        print_json(found)
    else:
        _print_states(found)
    if not all(each.reachable for each in found):
        raise typer.Exit(1)


async def _find_federated(server: "Server") -> list[str]:
    return [each.name for each in await server.management.list_catalogs() if each.connection_config_info]


def _print_states(found: list[RemoteState]) -> None:
    print_table(
        ("CATALOG", "TYPE", "REACHABLE", "BREAKER", "FAILURES", "LAST ERROR", "URI"),
        [
            (
                each.catalog,
                each.connection_type,
                "yes" if each.reachable else each.problem or "no",
                each.breaker,
                each.failures,
                each.last_error,
                each.uri,
            )
            for each in found
        ],
    )
    if not found:
        tell("There is no federated catalog: cynosure catalogs create NAME --connection-type TYPE …")
    tell_troubles(found)


@app.command()
@connected
def reconcile(
    to: Remote,
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="A federated catalog.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what is different, as without --fix.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Have what is known of the remote be as it is.")] = False,
    page_size: Annotated[
        int, typer.Option("--page-size", metavar="N", min=1, max=200, help="Entries per request.")
    ] = 100,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only tell row filters and masks that wait for tables.")
    ] = False,
    forget_waiting: Annotated[
        bool,
        typer.Option("--forget-waiting", help="Give up what waits for tables that the remote has no more."),
    ] = False,
) -> None:
    """Compare what is known of a remote with what it has now: what is gone, made anew, renamed, changed.

    Grants and policies on tables that are gone, or were made anew under the same name, are told. Only row
    filters and masks of these count for what has the name now. They also wait for the old table, wherever it
    is seen again: --forget-waiting has the remote load all its tables, and gives up what waits for none.

    Example: `cynosure federation reconcile hive`

    Example: `cynosure federation reconcile hive --fix`

    Example: `cynosure federation reconcile hive --waiting`
    """
    if dry_run and fix:
        raise BadInput("Nothing is mended in a dry run", field="--fix", fix="Give one of them.")
    if waiting or forget_waiting:
        if fix or dry_run or (waiting and forget_waiting):
            raise BadInput("These are two commands", field="--waiting", fix="Give one of them.")
        _look_after_waiting(to, catalog, is_forgetting=forget_waiting, page_size=page_size)
        return
    query = {"dryRun": "false" if fix else "true", "pageSize": str(page_size)}
    with show_progress() as report:
        found = to.run(lambda server: _compare(server, catalog, query, report))
    if to.as_json:
        print_json(found)
    else:
        _print_report(found, is_fixing=fix)
    if any(not each.mended for each in found.differences):
        raise typer.Exit(1)


def _look_after_waiting(to: Remote, catalog: str, *, is_forgetting: bool, page_size: int) -> None:
    query = {"waiting": "forget" if is_forgetting else "list", "pageSize": str(page_size)}
    found = to.run(lambda server: _read_waiting(server, catalog, query))
    if to.as_json:
        print_json(found)
    elif is_forgetting:
        tell(f"{found.forgotten} given up, {found.kept} wait on: a table is there for them, or may come.")
    else:
        _print_waiting(found.waiting)


async def _read_waiting(server: "Server", catalog: str, query: dict[str, str]) -> WaitingLeft:
    waiting, asked = list[Waiting](), dict(query)
    while True:
        page = await server.management.reconcile(catalog, asked, Page, timeout_s=_TIMEOUT_S)
        waiting += page.waiting
        if page.next_page_token is None:
            return WaitingLeft(catalog, waiting, page.forgotten, page.kept)
        asked["pageToken"] = page.next_page_token


def _print_waiting(waiting: list[Waiting]) -> None:
    if waiting:
        print_table(
            ("FOR", "NAME", "UUID", "POLICIES"),
            [
                (each.type, ".".join(each.path) or None, each.uuid or None, ", ".join(each.policies) or None)
                for each in waiting
            ],
        )
    tell(f"{len(waiting)} wait for tables or namespaces of the remote.")


async def _compare(server: "Server", catalog: str, query: dict[str, str], report: "Report") -> Comparison:
    checked, differences = 0, list[Difference]()
    asked: dict[str, Any] = dict(query)
    while True:
        page = await server.management.reconcile(catalog, asked, Page, timeout_s=_TIMEOUT_S)
        checked += page.checked
        differences += page.differences
        report(Progress(f"{checked} compared, {len(differences)} different"))
        if page.next_page_token is None:
            return Comparison(catalog, checked, differences)
        asked["pageToken"] = page.next_page_token


def _print_report(found: Comparison, *, is_fixing: bool) -> None:
    if found.differences:
        print_table(
            ("TYPE", "NAME", "DIFFERENCE", "MENDED", "GRANTS", "POLICIES"),
            [
                (
                    each.type,
                    ".".join(each.path),
                    f"moved to {'.'.join(each.moved_to)}" if each.moved_to else each.difference,
                    "yes" if each.mended else "no",
                    ", ".join(f"{grant.role}: {' '.join(grant.privileges)}" for grant in each.grants) or None,
                    ", ".join(each.policies) or None,
                )
                for each in found.differences
            ],
        )
    tell(f"{found.checked} compared, {len(found.differences)} different.")
    if not is_fixing and any(each.difference not in _NOT_OURS for each in found.differences):
        tell(f"Have them mended: cynosure federation reconcile {found.catalog} --fix")


_NOT_OURS: Final = ("unreachable", "unusable", "not-shown", "name-not-allowed")
"""Differences that only whoever has the remote can do something about."""
