"""`cynosure maintenance …`: what policies make run for tables, and why or why not."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import Separator, format_size, parse_properties, split_name
from cynosure.cli.output import print_json, print_table, tell
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from datetime import datetime

    from cynosure.client.maintenance import MaintenanceRun, PlanEntry

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Maintenance of tables: compaction, expiry of snapshots, removal of orphan files.",
    epilog="Policies of the types `system.*` say what runs when: `cynosure policies -h`.",
)

Catalog = Annotated[str, typer.Argument(metavar="CATALOG", help="The catalog.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAMESPACE", help="Only tables in it, or below it."),
]
Table = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table of it.")]


@app.command()
@connected
def plan(
    to: Remote, catalog: Catalog, namespace: Namespace = None, table: Table = None, separator: Separator = "."
) -> None:
    """Explain what maintenance would run now, and why all other does not.

    Example: `cynosure maintenance plan lake --namespace sales`
    """
    levels = _levels(namespace, table, separator)
    found = to.run(lambda server: server.maintenance(catalog).plan(levels, table))
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("TABLE", "OPERATION", "POLICY", "DECISION", "NEXT", "WHY"),
        [
            (
                separator.join((*each.namespace, each.table)),
                each.operation,
                f"{separator.join((*each.policy.namespace, each.policy.name))} on {each.policy.attached_to}",
                each.decision,
                _time(each.next_at),
                _why(each),
            )
            for each in found.plan
        ],
    )
    if not found.plan:
        tell("No policy of maintenance counts for any of these tables: cynosure policies attach -h")
    if not found.is_complete:
        tell("There are more tables with policies; name a namespace to see its plan.")


@app.command()
@connected
def runs(
    to: Remote, catalog: Catalog, namespace: Namespace = None, table: Table = None, separator: Separator = "."
) -> None:
    """List the maintenance that was run, per table: before and after, and what became of it.

    Example: `cynosure maintenance runs lake --namespace sales --table orders`
    """
    levels = _levels(namespace, table, separator)
    found = to.run(lambda server: server.maintenance(catalog).list_runs(levels, table))
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("TABLE", "OPERATION", "ORDERED", "BY", "OUTCOME", "FILES", "BYTES", "TASK", "SUMMARY"),
        [
            (
                separator.join((*each.namespace, each.table)) + (" (gone)" if each.is_gone else ""),
                each.operation,
                _time(run.ordered_at),
                run.ordered_by or "schedule",
                run.outcome,
                _files(run),
                _bytes(run),
                run.task_id,
                run.summary,
            )
            for each in found
            for run in each.runs
        ],
    )
    if not found:
        tell("Nothing was run yet: cynosure maintenance plan CATALOG tells why.")


@app.command()
@changing
def run(
    to: Remote,
    catalog: Catalog,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAMESPACE", help="With dots between levels.")
    ],
    table: Annotated[str, typer.Option("--table", metavar="TABLE", help="The table.")],
    operation: Annotated[
        str,
        typer.Option(
            "--operation",
            metavar="OPERATION",
            help="DATA_COMPACTION, METADATA_COMPACTION, SNAPSHOT_EXPIRY, ORPHAN_FILE_REMOVAL, "
            "FORMAT_CONVERSION; or TABLE_PURGE with dryRun=true.",
        ),
    ],
    instructions: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="Instruction for the task; may be repeated."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow it until it ends: 0 for success, 1 for failure.")
    ] = False,
    separator: Separator = ".",
) -> None:
    """Order one task for a table now, whatever policies say.

    Example: `cynosure maintenance run lake --namespace sales --table orders --operation DATA_COMPACTION
    --property target_file_size_bytes=134217728 --wait`
    """
    levels, told = split_name(namespace, separator), parse_properties(instructions)
    ordered = to.run(lambda server: server.maintenance(catalog).order(levels, table, operation, told))
    if not wait:
        print_done(f"Task {ordered.task_id} is {ordered.status}.", ordered, to.as_json)
        return
    from cynosure.cli.tasks import show_until_end

    tell(f"Task {ordered.task_id} is {ordered.status}.")
    show_until_end(to, ordered.task_id)


def _levels(namespace: str | None, table: str | None, separator: str) -> tuple[str, ...]:
    if namespace is None:
        if table is not None:
            raise BadInput("A table is in a namespace", field="--namespace", fix="Give --namespace, too.")
        return ()
    return split_name(namespace, separator)


def _why(entry: "PlanEntry") -> str:
    why = entry.why if entry.task_id is None else f"{entry.why}: {entry.task_id}"
    return "; ".join((why, *entry.notes)) if entry.notes else why


def _files(run: "MaintenanceRun") -> str | None:
    if run.files_before is not None and run.files_after is not None:
        return f"{run.files_before} → {run.files_after}"
    return f"-{run.files_deleted}" if run.files_deleted else None


def _bytes(run: "MaintenanceRun") -> str | None:
    if run.bytes_before is not None and run.bytes_after is not None:
        return f"{format_size(run.bytes_before)} → {format_size(run.bytes_after)}"
    return f"-{format_size(run.bytes_deleted)}" if run.bytes_deleted else None


def _time(at: "datetime | None") -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")
