"""`cynosure tables …`: list, look at, change and drop tables, import many at once, restore dropped ones."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cynosure.cli import options, table_append, table_drops, table_files, table_shape, table_stats
from cynosure.cli.names import OfCatalog, OfNamespace, Separator, format_time, split_name
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_fields, print_json, print_table
from cynosure.cli.remote import Remote, connected

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="List, look at, change and drop tables, import many at once, restore dropped ones.",
)

_FILES = "Operate, on the server's machine"
Name = Annotated[str, typer.Argument(metavar="TABLE", help="The table.")]

app.command("delete")(table_drops.delete)
app.command("drop", hidden=True)(table_drops.delete)
app.command("dropped")(table_drops.list_dropped)
app.command("restore")(table_drops.restore)
app.command("append")(table_append.append)
app.command("add-columns")(table_shape.add_columns)
app.command("set-partitioning")(table_shape.set_partitioning)
app.command("set-sort-order")(table_shape.set_sort_order)
app.command("stats")(table_stats.stats)
app.command("export", rich_help_panel=_FILES)(table_files.export)
app.command("sweep", rich_help_panel=_FILES)(table_files.sweep)


@app.command("list")
@connected
def list_all(to: Remote, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = ".") -> None:
    """List the tables of a namespace."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).list_tables(levels))
    if to.as_json:
        print_json(found)
    else:
        print_table(("NAMESPACE", "TABLE"), [(separator.join(each.namespace), each.name) for each in found])


@app.command()
@connected
def get(
    to: Remote, table: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Show a table: its columns and where it is; `--json` shows all of its metadata."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).load_table(levels, table))
    if to.as_json:
        print_json(found)
        return
    metadata: dict[str, Any] = found["metadata"]
    [schema] = [each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]]
    print_fields(
        {
            "table": table,
            "uuid": metadata["table-uuid"],
            "format version": metadata["format-version"],
            "location": metadata["location"],
            "metadata": found.get("metadata-location"),
            "snapshots": len(metadata.get("snapshots") or ()),
            "updated": format_time(metadata["last-updated-ms"]),
            **{f"  {key}": value for key, value in (metadata.get("properties") or {}).items()},
        }
    )
    print()
    print_table(
        ("COLUMN", "TYPE", "REQUIRED"),
        [
            (
                each["name"],
                each["type"] if isinstance(each["type"], str) else each["type"]["type"],
                "yes" if each["required"] else "no",
            )
            for each in schema["fields"]
        ],
    )


@app.command("import", rich_help_panel=_FILES)
def import_file(
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="Name of an empty catalog.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tables: JSON lines, or CSV.")],
    realm: options.Realm = "default",
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
    params = ImportParams(catalog, str(file.expanduser().absolute()), realm=realm)
    imported = run_operator_command("tables.import", params, Imported, source)
    if as_json:
        print_json(imported)
    else:
        print(f"{imported.tables} tables in {imported.namespaces} namespaces are in {catalog}.")
