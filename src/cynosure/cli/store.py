"""`cynosure store …`: look after the store, through the running server when there is one.

A maintainer must not break: these commands only show and ask; what they do is in
`server/store_commands.py`, the same in and out of the server.
"""

from typing import Annotated, Any

import typer

from cynosure.cli import options
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_fields, print_json, print_table, tell

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look after the store: history, restore, garbage collection.",
    epilog=(
        "A TARGET names a reference: REALM/REFERENCE (`default/catalogs`) or REALM/CATALOG/REFERENCE. "
        "`cynosure store status` lists them. A COMMIT is a number from `cynosure store log`, or a time "
        "such as `2026-01-31T12:00`."
    ),
)

Target = Annotated[str, typer.Argument(metavar="TARGET", help="REALM/REFERENCE or REALM/CATALOG/REFERENCE")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Lines at most.")]


@app.command()
def init(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Make an empty store ready. Harmless on one that is."""
    from cynosure.server.store_commands import InitParams, StoreStatus

    found = run_operator_command("store.init", InitParams(), StoreStatus, _source(config, data, store))
    if as_json:
        print_json(found)
    else:
        print(f"Store {found.id} is ready.")


@app.command()
def status(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    heads: Annotated[
        bool, typer.Option("--heads", help="Also check the recent heads, for a disaster reset.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show references, leases and tasks."""
    from cynosure.server.store_commands import StatusParams, StoreStatus

    source = _source(config, data, store)
    found = run_operator_command("store.status", StatusParams(heads=heads), StoreStatus, source)
    if as_json:
        print_json(found)
        return
    print_fields({"store": found.id, "created": found.created, "layout": found.layout})
    print()
    print_table(
        ("REFERENCE", "SEQUENCE", "HEAD", "GENERATION", "COMMITTED"),
        [(ref.target, ref.sequence, ref.head or "-", ref.generation, ref.time) for ref in found.references],
    )
    if heads:
        for ref in found.references:
            print()
            print_table(
                (f"RECENT HEADS OF {ref.target}", "PROBLEMS"),
                [(head.id, head.problems or "complete") for head in ref.recent],
            )
    print()
    print_table(
        ("NODE", "LEASED BY", "UNTIL"), [(lease.node, lease.owner, lease.until) for lease in found.leases]
    )
    if found.tasks:
        print()
        print_table(
            ("TASK", "STATE", "NEXT", "LAST RESULT"),
            [(task.name, task.state, task.next_due, task.error or task.result) for task in found.tasks],
        )


@app.command()
def log(
    target: Target,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    limit: Limit = 20,
    since: Annotated[str, typer.Option("--from", metavar="COMMIT", help="Begin here, not at the head.")] = "",
    as_json: options.Json = False,
) -> None:
    """List commits of a reference, newest first."""
    from cynosure.server.store_commands import LogLine, TargetParams

    params = TargetParams(target=target, limit=limit, after=since)
    lines = run_operator_command("store.log", params, list[LogLine], _source(config, data, store))
    if as_json:
        print_json(lines)
        return
    print_table(
        ("COMMIT", "SEQUENCE", "TIME", "REQUESTS"),
        [(line.id, line.sequence, line.time, ", ".join(line.requests)) for line in lines],
    )


@app.command()
def diff(
    target: Target,
    before: Annotated[str, typer.Argument(metavar="COMMIT", help="The older state.")],
    after: Annotated[
        str, typer.Argument(metavar="[COMMIT]", help="The newer state. Default: the current one.")
    ] = "",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    limit: Limit = 1000,
    as_json: options.Json = False,
) -> None:
    """Show what changed between two states of a reference."""
    from cynosure.server.store_commands import DiffLine, TargetParams

    params = TargetParams(target=target, limit=limit, before=before, after=after)
    lines = run_operator_command("store.diff", params, list[DiffLine], _source(config, data, store))
    if as_json:
        print_json(lines)
        return
    for line in lines:
        sign = "+" if line.before is None else "-" if line.after is None else "~"
        values = " -> ".join(value for value in (line.before, line.after) if value is not None)
        print(f"{sign} {line.index}  {line.key}  {values}")
    if len(lines) == limit:
        tell(f"Only the first {limit} differences are shown; see --limit.")


@app.command()
def restore(
    target: Target,
    to: Annotated[str, typer.Argument(metavar="COMMIT", help="The state to make current again.")],
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    revive_rights: Annotated[
        bool, typer.Option("--revive-rights", help="Also restore grants and principals, revoked ones too.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Make an earlier state current again, as a new commit. Can itself be undone."""
    from cynosure.server.store_commands import RestoreParams

    params = RestoreParams(target=target, to=to, revive_rights=revive_rights)
    _print_summary("store.restore", params, _source(config, data, store), as_json)


@app.command()
def gc(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, delete nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Collect garbage now. Servers do it by themselves every two days."""
    from cynosure.server.store_commands import GcParams

    _print_summary("store.gc", GcParams(dry_run=dry_run), _source(config, data, store), as_json)


@app.command()
def check(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Prove that everything reachable is there and readable, and indexes agree. Exit code 1 when not."""
    from cynosure.persistence.history.check import CheckReport
    from cynosure.server.store_commands import InitParams

    source = _source(config, data, store)
    reports = run_operator_command("store.check", InitParams(), list[CheckReport], source)
    if as_json:
        print_json(reports)
    else:
        print_table(
            ("REFERENCE", "COMMITS", "OBJECTS", "PROBLEMS"),
            [(each.reference, each.commits, each.objects, len(each.problems)) for each in reports],
        )
        for report in reports:
            for problem in report.problems:
                print(f"{report.reference}: {problem}")
    if any(report.problems for report in reports):
        raise typer.Exit(1)


@app.command()
def reset(
    target: Target,
    head: Annotated[int, typer.Argument(metavar="HEAD", help="A recent head from 'store status --heads'.")],
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    confirm: Annotated[
        bool, typer.Option("--yes", help="Really: commits after that head leave the history.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """After a disaster: move a reference to a recent head. To undo changes, use restore instead."""
    from cynosure.server.store_commands import ResetParams

    if not confirm:
        tell("This takes every commit after that head out of the history. Add --yes to do it.")
        raise typer.Exit(2)
    _print_summary(
        "store.reset", ResetParams(target=target, head=head), _source(config, data, store), as_json
    )


def _print_summary(name: str, params: Any, source: Any, as_json: bool) -> None:
    from cynosure.server.store_commands import Summary

    done = run_operator_command(name, params, Summary, source)
    if as_json:
        print_json(done)
    else:
        print(done.text)


def _source(config: options.Config, data: options.Data, store: options.Store) -> Any:
    return options.make_source(config, {"server.data_dir": data, "persistence.url": store})
