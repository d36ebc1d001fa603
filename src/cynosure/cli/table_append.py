"""`cynosure tables append`: the rows of a file of this machine into a table."""

from pathlib import Path
from typing import Annotated

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Properties, Separator, parse_properties, split_name
from cynosure.cli.output import print_json, show_progress
from cynosure.cli.remote import Remote, changing
from cynosure.common.progress import Progress


@changing
def append(
    to: Remote,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Parquet, Arrow, CSV with a heading, or JSON lines.")
    ],
    catalog: OfCatalog,
    namespace: OfNamespace,
    branch: Annotated[str, typer.Option("--branch", help="The branch that gets the rows.")] = "main",
    summary: Properties = None,
    separator: Separator = ".",
) -> None:
    """Append the rows of a file to a table; `--property` adds to the snapshot's summary.

    Columns are found by their names. The very same file with the same `--idempotency-key` is appended once.

    Example: `cynosure tables append orders day.csv --catalog lake --namespace sales`
    """
    from cynosure.client.appends import require_pyarrow

    require_pyarrow()
    from cynosure.client.appending.local_files import read_local

    levels = split_name(namespace, separator)
    data = read_local(file.expanduser())
    properties = parse_properties(summary)
    with show_progress() as report:
        done = to.run(
            lambda server: server.appends(catalog).append(
                levels,
                table,
                data,
                branch=branch,
                summary=properties,
                on_progress=lambda rows, files: report(Progress(f"Reading {file.name}: rows", rows)),
            )
        )
    if to.as_json:
        print_json(done)
    elif done.snapshot_id is None:
        print(f"{file.name} has no rows: nothing was appended.")
    else:
        print(f"{done.added_records} rows in {done.added_files} files are in snapshot {done.snapshot_id}.")
