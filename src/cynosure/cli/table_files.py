"""`cynosure tables export` and `sweep`: look after the files of tables."""

from typing import Annotated, Any

import typer

from cynosure.cli import options
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_json, tell
from cynosure.common.errors import BadInput

Catalog = Annotated[str, typer.Argument(metavar="CATALOG", help="Name of the catalog.")]


def export(
    catalog: Catalog,
    table: Annotated[str, typer.Argument(metavar="NAMESPACE.TABLE", help="The table.")],
    separator: Annotated[
        str, typer.Option("--separator", help="What separates the names, if one of them holds a dot.")
    ] = ".",
    realm: options.Realm = "default",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Write a table's metadata file again if it is gone. The table itself never needed it.

    Example: `cynosure tables export sales eu.orders --data ./data`
    """
    from cynosure.server.file_commands import Exported, ExportParams

    if not separator:
        raise BadInput("The separator is empty", field="separator", fix="Give at least one character.")
    params = ExportParams(catalog, tuple(table.split(separator)), realm=realm)
    done = run_operator_command("tables.export", params, Exported, _source(config, data, store))
    if as_json:
        print_json(done)
    else:
        print(done.location)


def sweep(
    catalog: Catalog,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Leave younger files alone. Not below the longest commit: its file is there before it is.",
        ),
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="List everything, not only directories of existing tables.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    realm: options.Realm = "default",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Remove metadata files of commits that never came to be: their server was killed."""
    from cynosure.catalog.files.sweep import Swept
    from cynosure.server.file_commands import SweepParams

    params = SweepParams(catalog, _seconds(grace), thorough, dry_run, realm=realm)
    done = run_operator_command("tables.sweep", params, Swept, _source(config, data, store))
    if as_json:
        print_json(done)
        return
    for location in done.locations:
        print(location)
    verb = "would be removed" if dry_run else "removed"
    tell(f"Looked at {done.files} metadata files; {done.strays} stray ones {verb}.")


def _seconds(grace: str | None) -> float | None:
    from cynosure.common.quantities import parse_duration

    if grace is None:
        return None
    try:
        return parse_duration(grace).total_seconds()
    except ValueError as error:
        raise BadInput(
            "Not a duration", field="grace", fix="Write it with its unit, such as 0s, 10m or 3h.", value=grace
        ) from error


def _source(config: options.Config, data: options.Data, store: options.Store) -> Any:
    return options.make_source(config, {"server.data_dir": data, "persistence.url": store})
