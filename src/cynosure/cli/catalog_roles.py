"""`cynosure catalog-roles …`: roles inside a catalog, which privileges are granted to."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import (
    OfCatalog,
    Properties,
    RemoveProperties,
    SetProperties,
    change_properties,
    parse_properties,
)
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done, print_role, print_roles

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.management_types import CatalogRole

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Roles inside a catalog, which privileges are granted to.",
    epilog="Privileges: `cynosure privileges --help`. All steps: `cynosure principal-roles --help`.",
)

Name = Annotated[str, typer.Argument(metavar="ROLE", help="Name of the catalog role.")]
ToRole = Annotated[str, typer.Option("--principal-role", metavar="ROLE", help="The principal role.")]


@app.command()
@changing
def create(to: Remote, name: Name, catalog: OfCatalog, properties: Properties = None) -> None:
    """Create a catalog role.

    Example: `cynosure catalog-roles create reader --catalog sales`
    """
    given = parse_properties(properties)
    made = to.run(lambda server: server.management.create_catalog_role(catalog, name, given))
    print_done(f"Catalog role {name} of {catalog} is ready.", made, to.as_json)


@app.command("list")
@connected
def list_all(
    to: Remote,
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="The catalog.")],
    principal_role: Annotated[
        str | None, typer.Option("--principal-role", metavar="ROLE", help="Only those that it has.")
    ] = None,
) -> None:
    """List the roles of a catalog."""

    async def work(server: "Server") -> "list[CatalogRole]":
        if principal_role is not None:
            return await server.management.list_catalog_roles_of(principal_role, catalog)
        return await server.management.list_catalog_roles(catalog)

    print_roles("CATALOG ROLE", to.run(work), to.as_json)


@app.command()
@connected
def get(to: Remote, name: Name, catalog: OfCatalog) -> None:
    """Show one catalog role and which principal roles have it."""

    async def work(server: "Server") -> "tuple[CatalogRole, list[str]]":
        found = await server.management.load_catalog_role(catalog, name)
        assignees = await server.management.list_assignees_of_catalog_role(catalog, name)
        return found, [each.name for each in assignees]

    found, assignees = to.run(work)
    print_role("catalog role", found, assignees, to.as_json)


@app.command()
@changing
def update(
    to: Remote,
    name: Name,
    catalog: OfCatalog,
    properties: SetProperties = None,
    remove_property: RemoveProperties = None,
) -> None:
    """Change properties of a catalog role; what is not named stays."""

    async def work(server: "Server") -> "CatalogRole":
        current = await server.management.load_catalog_role(catalog, name)
        wanted = change_properties(current.properties, properties, remove_property)
        return await server.management.update_catalog_role(catalog, current, wanted)

    done = to.run(work)
    print_done(f"Catalog role {name} is at version {done.entity_version}.", done, to.as_json)


@app.command()
@changing
def delete(to: Remote, name: Name, catalog: OfCatalog) -> None:
    """Delete a catalog role with everything that was granted to it."""
    to.run(lambda server: server.management.delete_catalog_role(catalog, name))
    print_done(f"Catalog role {name} of {catalog} is gone.", {"deleted": name}, to.as_json)


@app.command()
@changing
def grant(to: Remote, name: Name, catalog: OfCatalog, principal_role: ToRole) -> None:
    """Give a catalog role to a principal role. Harmless when it has it.

    Example: `cynosure catalog-roles grant reader --catalog sales --principal-role analysts`
    """
    to.run(lambda server: server.management.assign_catalog_role(principal_role, catalog, name))
    print_done(
        f"Principal role {principal_role} has the catalog role {name} of {catalog}.",
        {"catalogRole": name, "catalog": catalog, "principalRole": principal_role},
        to.as_json,
    )


@app.command()
@changing
def revoke(to: Remote, name: Name, catalog: OfCatalog, principal_role: ToRole) -> None:
    """Take a catalog role away from a principal role, effective with the next request."""
    to.run(lambda server: server.management.revoke_catalog_role(principal_role, catalog, name))
    print_done(
        f"Principal role {principal_role} no longer has the catalog role {name} of {catalog}.",
        {"catalogRole": name, "catalog": catalog, "principalRole": principal_role},
        to.as_json,
    )
