"""`cynosure principal-roles …`: roles that principals have."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import (
    Properties,
    RemoveProperties,
    SetProperties,
    change_properties,
    parse_properties,
)
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done, print_role, print_roles
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.management_types import PrincipalRole

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Roles that principals have. They get their rights from catalog roles.",
    epilog=(
        "**From nothing to reading a catalog**\n\n"
        "`cynosure principals create alice`\n\n"
        "`cynosure principal-roles create analysts`\n\n"
        "`cynosure principal-roles grant analysts --principal alice`\n\n"
        "`cynosure catalog-roles create reader --catalog sales`\n\n"
        "`cynosure catalog-roles grant reader --catalog sales --principal-role analysts`\n\n"
        "`cynosure privileges catalog grant TABLE_READ_DATA --catalog sales --catalog-role reader`"
    ),
)

Name = Annotated[str, typer.Argument(metavar="ROLE", help="Name of the principal role.")]
ToPrincipal = Annotated[str, typer.Option("--principal", metavar="NAME", help="The principal.")]


@app.command()
@changing
def create(
    to: Remote,
    name: Name,
    properties: Properties = None,
    federated: Annotated[
        bool, typer.Option("--federated", help="Another issuer's tokens say who has it.")
    ] = False,
) -> None:
    """Create a principal role.

    Example: `cynosure principal-roles create analysts`
    """
    given = parse_properties(properties)
    made = to.run(
        lambda server: server.management.create_principal_role(name, given, is_federated=federated),
        initialise=True,
    )
    print_done(f"Principal role {name} is ready.", made, to.as_json)


@app.command("list")
@connected
def list_all(
    to: Remote,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="NAME", help="Only those that it has.")
    ] = None,
    catalog: Annotated[
        str | None, typer.Option("--catalog", metavar="NAME", help="With --catalog-role.")
    ] = None,
    catalog_role: Annotated[
        str | None, typer.Option("--catalog-role", metavar="ROLE", help="Only those that have it.")
    ] = None,
) -> None:
    """List principal roles."""
    if (catalog is None) != (catalog_role is None) or (catalog is not None and principal is not None):
        raise BadInput(
            "These filters do not go together",
            field="--catalog-role",
            fix="Give --principal, or --catalog and --catalog-role, or none of them.",
        )

    async def work(server: "Server") -> "list[PrincipalRole]":
        if principal is not None:
            return await server.management.list_roles_of_principal(principal)
        if catalog is not None and catalog_role is not None:
            return await server.management.list_assignees_of_catalog_role(catalog, catalog_role)
        return await server.management.list_principal_roles()

    print_roles("PRINCIPAL ROLE", to.run(work), to.as_json)


@app.command()
@connected
def get(to: Remote, name: Name) -> None:
    """Show one principal role and who has it."""

    async def work(server: "Server") -> "tuple[PrincipalRole, list[str]]":
        found = await server.management.load_principal_role(name)
        return found, [each.name for each in await server.management.list_assignees(name)]

    found, assignees = to.run(work)
    print_role("principal role", found, assignees, to.as_json)


@app.command()
@changing
def update(
    to: Remote, name: Name, properties: SetProperties = None, remove_property: RemoveProperties = None
) -> None:
    """Change properties of a principal role; what is not named stays."""

    async def work(server: "Server") -> "PrincipalRole":
        current = await server.management.load_principal_role(name)
        wanted = change_properties(current.properties, properties, remove_property)
        return await server.management.update_principal_role(current, wanted)

    done = to.run(work)
    print_done(f"Principal role {name} is at version {done.entity_version}.", done, to.as_json)


@app.command()
@changing
def delete(to: Remote, name: Name) -> None:
    """Delete a principal role. Whoever had it has it no longer."""
    to.run(lambda server: server.management.delete_principal_role(name))
    print_done(f"Principal role {name} is gone.", {"deleted": name}, to.as_json)


@app.command()
@changing
def grant(to: Remote, name: Name, principal: ToPrincipal) -> None:
    """Give a principal role to a principal. Harmless when it has it.

    Example: `cynosure principal-roles grant analysts --principal alice`
    """
    to.run(lambda server: server.management.assign_principal_role(principal, name))
    print_done(
        f"Principal {principal} has the principal role {name}.",
        {"principalRole": name, "principal": principal},
        to.as_json,
    )


@app.command()
@changing
def revoke(to: Remote, name: Name, principal: ToPrincipal) -> None:
    """Take a principal role away from a principal, effective with its next request."""
    to.run(lambda server: server.management.revoke_principal_role(principal, name))
    print_done(
        f"Principal {principal} no longer has the principal role {name}.",
        {"principalRole": name, "principal": principal},
        to.as_json,
    )
