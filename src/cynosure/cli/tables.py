"""`cynosure tables …`: import many tables at once."""

from pathlib import Path
from typing import Annotated

import typer

from cynosure.cli import options
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Import many tables at once.")


@app.callback()
def tables() -> None:
    """Import many tables at once."""


@app.command("import")
def import_file(
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="Name of an empty catalog.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tables: JSON lines, or CSV.")],
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Make tables known whose metadata files exist. All of them, in one commit, or none.

    A line of JSON: `{"namespace": ["sales"], "name": "orders", "metadata-location": "s3://…"}`. CSV has the
    heading `namespace,name,metadata-location,location`, and dots between the levels of a namespace. The
    `location` is needed where the file is not in a directory `metadata` of the table. Namespaces are made as
    needed; files are read when a table is first used.
    """
    from cynosure.catalog.bulk_import import Imported
    from cynosure.server.table_commands import ImportParams

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    params = ImportParams(catalog, str(file.expanduser().absolute()))
    imported = run_operator_command("tables.import", params, Imported, source)
    if as_json:
        print_json(imported)
    else:
        print(f"{imported.tables} tables in {imported.namespaces} namespaces are in {catalog}.")
