"""`cynosure principals …`: people and services, and their credentials.

A maintainer must not break: a secret is shown once, on standard output or in a file of mode 0600, and only
where one was just made.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cynosure.cli.credentials import CredentialsFile
from cynosure.cli.flags import read_secret
from cynosure.cli.names import (
    Properties,
    RemoveProperties,
    SetProperties,
    change_properties,
    format_properties,
    format_time,
    parse_properties,
)
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.cli.remote import Remote, changing, connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cynosure.cli.transport import Server
    from cynosure.client.management_types import Principal, PrincipalWithCredentials

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="People and services, and their credentials.",
    epilog=(
        "A principal may do what its principal roles may: "
        "`cynosure principal-roles grant ROLE --principal NAME`. "
        "`cynosure explain NAME OPERATION TARGET` says why it may or may not do something."
    ),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the principal.")]
Into = Annotated[
    Path | None,
    typer.Option(
        "--credentials-file",
        metavar="FILE",
        help="Write the credentials there, readable by you alone, and not to the screen.",
    ),
]


@app.command()
@changing
def create(
    to: Remote,
    name: Name,
    properties: Properties = None,
    rotation_required: Annotated[
        bool,
        typer.Option(
            "--rotation-required", help="Its first secret is good for nothing but asking for another one."
        ),
    ] = False,
    kind: Annotated[str, typer.Option("--type", hidden=True)] = "SERVICE",
    credentials_file: Into = None,
) -> None:
    """Create a principal. Its secret is shown once; nobody can read it again.

    Example: `cynosure principals create alice --property team=sales`
    """
    given = parse_properties(properties)
    _make_credentials(
        to,
        lambda server: server.management.create_principal(
            name, given, is_rotation_required=rotation_required
        ),
        credentials_file,
        initialise=True,
    )


@app.command("list")
@connected
def list_all(
    to: Remote,
    principal_role: Annotated[
        str | None, typer.Option("--principal-role", metavar="ROLE", help="Only those that have it.")
    ] = None,
) -> None:
    """List principals."""

    async def work(server: "Server") -> "list[Principal]":
        if principal_role is not None:
            return await server.management.list_assignees(principal_role)
        return await server.management.list_principals()

    found = to.run(work)
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("PRINCIPAL", "CLIENT ID", "CREATED", "PROPERTIES"),
        [
            (
                each.name,
                each.client_id or "-",
                format_time(each.create_timestamp),
                format_properties(each.properties),
            )
            for each in found
        ],
    )


@app.command()
@connected
def get(to: Remote, name: Name) -> None:
    """Show one principal and its roles."""

    async def work(server: "Server") -> "tuple[Principal, list[str]]":
        found = await server.management.load_principal(name)
        return found, [each.name for each in await server.management.list_roles_of_principal(name)]

    found, roles = to.run(work)
    if to.as_json:
        import msgspec

        shown: dict[str, Any] = msgspec.to_builtins(found)
        print_json({**shown, "principalRoles": roles})
        return
    print_fields(
        {
            "principal": found.name,
            "client id": found.client_id,
            "roles": ", ".join(roles) or "none",
            "trusted service": "yes" if found.trusted_service else None,
            "must rotate": "yes" if found.credential_rotation_required else None,
            **{f"  {key}": value for key, value in found.properties.items()},
            "version": found.entity_version,
            "created": format_time(found.create_timestamp),
            "updated": format_time(found.last_update_timestamp),
        }
    )


@app.command()
@connected
def access(to: Remote, name: Name) -> None:
    """Show everything that is granted to a principal, role by role."""

    async def work(server: "Server") -> list[tuple[str, str, str, str, str]]:
        management = server.management
        catalogs = [each.name for each in await management.list_catalogs()]
        rows = []
        for role in await management.list_roles_of_principal(name):
            for catalog in catalogs:
                for catalog_role in await management.list_catalog_roles_of(role.name, catalog):
                    for grant in await management.list_grants(catalog, catalog_role.name):
                        on = ".".join((*grant.namespace, *([grant.name] if grant.name else ())))
                        where = f"{grant.type} {on}".rstrip()
                        rows.append((role.name, catalog, catalog_role.name, grant.privilege, where))
        return rows

    columns = ("principal_role", "catalog", "catalog_role", "privilege", "on")
    rows = to.run(work)
    if to.as_json:
        print_json({"principal": name, "grants": [dict(zip(columns, row, strict=True)) for row in rows]})
        return
    print_table([column.replace("_", " ").upper() for column in columns], rows)
    if not rows:
        tell("Nothing is granted to it; built-in rights of service_admin are not grants.")


@app.command()
@changing
def update(
    to: Remote, name: Name, properties: SetProperties = None, remove_property: RemoveProperties = None
) -> None:
    """Change properties of a principal; what is not named stays."""

    async def work(server: "Server") -> "Principal":
        current = await server.management.load_principal(name)
        wanted = change_properties(current.properties, properties, remove_property)
        return await server.management.update_principal(current, wanted)

    done = to.run(work)
    if to.as_json:
        print_json(done)
    else:
        print(f"Principal {done.name} is at version {done.entity_version}.")


@app.command()
@changing
def delete(to: Remote, name: Name) -> None:
    """Delete a principal. Its tokens end with the next request."""
    to.run(lambda server: server.management.delete_principal(name))
    if to.as_json:
        print_json({"deleted": name})
    else:
        print(f"Principal {name} is gone.")


@app.command("rotate-credentials")
@changing
def rotate_credentials(to: Remote, name: Name, credentials_file: Into = None) -> None:
    """Make a new secret. The one before stays good until the next rotation.

    Anybody may rotate their own; others need the privilege.
    """
    _make_credentials(to, lambda server: server.management.rotate_credentials(name), credentials_file)


@app.command("reset-credentials")
@app.command("reset", hidden=True)
@changing
def reset_credentials(
    to: Remote,
    name: Name,
    new_client_id: Annotated[
        str | None, typer.Option("--new-client-id", metavar="ID", help="Left out, it stays.")
    ] = None,
    new_client_secret_file: Annotated[
        str | None,
        typer.Option(
            "--new-client-secret-file",
            metavar="FILE",
            help="The secret to set; - reads stdin. Left out, one is made.",
        ),
    ] = None,
    credentials_file: Into = None,
) -> None:
    """Replace the credentials of a principal. No earlier secret, and no token of one, stays good."""
    secret = read_secret(new_client_secret_file, None, flag="--new-client-secret", prompt="New client secret")
    _make_credentials(
        to,
        lambda server: server.management.reset_credentials(
            name, client_id=new_client_id, client_secret=secret
        ),
        credentials_file,
    )


@app.command()
@changing
def trust(
    to: Remote,
    name: Name,
    is_trusted: Annotated[bool, typer.Option("--yes/--no", help="Trust it, or no longer.")] = True,
) -> None:
    """Let a service act on behalf of others, with their rights and not its own; `--no` ends that."""
    to.run(lambda server: server.management.trust_service(name, is_trusted=is_trusted))
    if to.as_json:
        print_json({"principal": name, "trusted": is_trusted})
    else:
        print(f"Principal {name} {'may' if is_trusted else 'may not'} act on behalf of others.")


def _make_credentials(
    to: Remote,
    work: "Callable[[Server], Awaitable[PrincipalWithCredentials]]",
    credentials_file: Path | None,
    *,
    initialise: bool = False,
) -> None:
    into = CredentialsFile.open(credentials_file)
    try:
        made = to.run(work, initialise=initialise)
    except BaseException:
        # The very same command can be run again, with its Idempotency-Key.
        if into is not None:
            into.remove_if_empty()
        raise
    _print_credentials(made, into, to.as_json)


def _print_credentials(made: "PrincipalWithCredentials", into: CredentialsFile | None, as_json: bool) -> None:
    name = made.principal.name
    if into is not None:
        into.add(name, made.credentials)
        tell(f"The credentials of {name} are in {into.path}")
        return
    if as_json:
        print_json(made)
        return
    print_fields(
        {
            "principal": name,
            "client id": made.credentials.client_id,
            "client secret": made.credentials.client_secret,
        }
    )
    tell("Keep the secret now: nobody can read it again.")
