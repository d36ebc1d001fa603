"""`cynosure namespaces …`: the namespaces of a catalog."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.cascading import Cascade, Purge, Yes, check_flags, describe_plan, drop_with_all
from cynosure.cli.names import (
    OfCatalog,
    Properties,
    RemoveProperties,
    Separator,
    SetProperties,
    parse_properties,
    split_name,
)
from cynosure.cli.output import print_fields, print_json, print_table
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.drops import CascadePlan

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The namespaces of a catalog.",
    epilog="A NAMESPACE has dots between its levels; `--separator` is for names that hold dots.",
)

Name = Annotated[str, typer.Argument(metavar="NAMESPACE", help="With dots between levels.")]


@app.command()
@changing
def create(
    to: Remote,
    namespace: Name,
    catalog: OfCatalog,
    properties: Properties = None,
    location: Annotated[
        str | None, typer.Option("--location", metavar="LOCATION", help="Where its new tables go.")
    ] = None,
    separator: Separator = ".",
) -> None:
    """Create a namespace; the one it is in must exist.

    Example: `cynosure namespaces create eu.orders --catalog sales`
    """
    levels = split_name(namespace, separator)
    given = {**parse_properties(properties), **({"location": location} if location else {})}
    made = to.run(lambda server: server.catalog(catalog).create_namespace(levels, given))
    print_done(f"Namespace {namespace} of {catalog} is ready.", made, to.as_json)


@app.command("list")
@connected
def list_all(
    to: Remote,
    catalog: OfCatalog,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="NAMESPACE", help="List what is directly in it.")
    ] = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All levels.")] = False,
    separator: Separator = ".",
) -> None:
    """List the namespaces of a catalog; without `--parent` or `--recursive`, the first level."""
    above = split_name(parent, separator) if parent else ()

    async def work(server: "Server") -> list[tuple[str, ...]]:
        api = server.catalog(catalog)
        return await (api.walk_namespaces(above) if recursive else api.list_namespaces(above))

    found = to.run(work)
    if to.as_json:
        print_json(found)
    else:
        print_table(("NAMESPACE",), [(separator.join(each),) for each in found])


@app.command()
@connected
def get(to: Remote, namespace: Name, catalog: OfCatalog, separator: Separator = ".") -> None:
    """Show one namespace."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).load_namespace(levels))
    if to.as_json:
        print_json(found)
        return
    print_fields(
        {
            "namespace": separator.join(found.namespace),
            "catalog": catalog,
            **{f"  {key}": value for key, value in found.properties.items()},
        }
    )


@app.command()
@changing
def update(
    to: Remote,
    namespace: Name,
    catalog: OfCatalog,
    properties: SetProperties = None,
    remove_property: RemoveProperties = None,
    separator: Separator = ".",
) -> None:
    """Change properties of a namespace; what is not named stays."""
    levels = split_name(namespace, separator)
    updates = parse_properties(properties)
    removals = tuple(remove_property or ())
    to.run(
        lambda server: server.catalog(catalog).update_namespace(levels, updates=updates, removals=removals)
    )
    print_done(
        f"Namespace {namespace} of {catalog} is changed.",
        {"namespace": levels, "updated": updates, "removed": removals},
        to.as_json,
    )


@app.command()
@changing
def delete(
    to: Remote,
    namespace: Name,
    catalog: OfCatalog,
    cascade: Cascade = False,
    purge: Purge = False,
    yes: Yes = False,
    separator: Separator = ".",
) -> None:
    """Drop an empty namespace, or one with all it holds.

    `cynosure tables restore` brings it back for a while, and what was in it, but for what is purged.

    Example: `cynosure namespaces delete sales.old --catalog lake`

    Example: `cynosure namespaces delete sales --catalog lake --cascade --purge`
    """
    check_flags(is_cascade=cascade, is_purging=purge)
    levels = split_name(namespace, separator)
    if not cascade:
        to.run(lambda server: server.catalog(catalog).drop_namespace(levels))
        print_done(f"Namespace {namespace} of {catalog} is gone.", {"deleted": levels}, to.as_json)
        return

    async def work(server: "Server") -> "CascadePlan":
        api = server.drops(catalog)
        return await drop_with_all(
            f"namespace {namespace} of {catalog}",
            lambda: api.plan_namespace(levels, is_purging=purge),
            lambda: api.drop_namespace(levels, is_purging=purge),
            is_purging=purge,
            is_confirmed=yes,
            is_repeated=to.get_key() is not None,
        )

    gone = to.run(work)
    said = f"Namespace {namespace} of {catalog} is gone, with {describe_plan(gone)}."
    print_done(said, {"deleted": levels, "with": gone}, to.as_json)
