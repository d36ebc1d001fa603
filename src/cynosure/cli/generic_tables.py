"""`cynosure generic-tables …`: tables of other formats than Iceberg."""

from typing import Annotated

import typer

from cynosure.cli.names import (
    OfCatalog,
    OfNamespace,
    Properties,
    Separator,
    make_absolute,
    parse_properties,
    split_name,
)
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Tables of other formats than Iceberg: create, list, look at and drop them.",
)

Name = Annotated[str, typer.Argument(metavar="TABLE", help="The generic table.")]


@app.command()
@changing
def create(
    to: Remote,
    table: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    table_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="`delta`, `csv` or another word.")
    ],
    location: Annotated[
        str | None,
        typer.Option("--base-location", "--location", metavar="LOCATION", help="Where all of its files are."),
    ] = None,
    doc: Annotated[str | None, typer.Option("--doc", metavar="TEXT", help="What it holds.")] = None,
    properties: Properties = None,
    separator: Separator = ".",
) -> None:
    """Make a table of another format known. Without a location, clients get no access to its files here.

    Example: `cynosure generic-tables create events --format delta --base-location s3://bucket/lake/events
    --catalog lake --namespace raw`
    """
    from cynosure.client.generic_tables import GenericTable

    levels = split_name(namespace, separator)
    wanted = GenericTable(
        name=table,
        format=table_format,
        base_location=make_absolute(location) if location else None,
        doc=doc,
        properties=parse_properties(properties),
    )
    made = to.run(lambda server: server.generic_tables(catalog).create(levels, wanted))
    print_done(f"Generic table {table} of {catalog} is ready.", made, to.as_json)


@app.command("list")
@connected
def list_all(to: Remote, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = ".") -> None:
    """List the generic tables of a namespace."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.generic_tables(catalog).list_all(levels))
    if to.as_json:
        print_json(found)
    else:
        rows = [(separator.join(each.namespace), each.name) for each in found]
        print_table(("NAMESPACE", "GENERIC TABLE"), rows)
        if not rows:
            tell("There is none: cynosure generic-tables create NAME")


@app.command()
@connected
def get(
    to: Remote, table: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Show a generic table."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.generic_tables(catalog).load(levels, table))
    if to.as_json:
        print_json(found)
        return
    print_fields(
        {
            "generic table": found.name,
            "format": found.format,
            "base location": found.base_location or "",
            "doc": found.doc or "",
            **{f"  {name}": value for name, value in sorted(found.properties.items())},
        }
    )


@app.command("delete")
@app.command("drop", hidden=True)
@changing
def delete(
    to: Remote, table: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Drop a generic table; its files stay. `cynosure tables restore` brings it back for a while."""
    levels = split_name(namespace, separator)
    to.run(lambda server: server.generic_tables(catalog).drop(levels, table))
    print_done(f"Generic table {table} is gone.", {"deleted": [*levels, table]}, to.as_json)
