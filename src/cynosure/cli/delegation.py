"""`cynosure delegation …`: a principal for a delegation service.

A maintainer must not break: it may manage content, and never who may do what.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.output import print_json, tell
from cynosure.cli.remote import Remote, connected
from cynosure.cli.service_principals import make_service_principal

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="A principal for a delegation service, with the rights that it needs.",
)

_NAME = "delegation-service"


@app.callback()
def delegation() -> None:
    """A principal for a delegation service, with the rights that it needs."""


@app.command()
@connected
def init(
    to: Remote,
    catalogs: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog", metavar="NAME", help="A catalog it works in; may be repeated. Default: all."
        ),
    ] = None,
    principal: Annotated[str, typer.Option("--principal", metavar="NAME", help="Name of it.")] = _NAME,
    credentials_file: Annotated[
        Path, typer.Option("--credentials-file", metavar="FILE", help="Where its credentials are written.")
    ] = Path("delegation-credentials.json"),
) -> None:
    """Make a principal for a delegation service, or give the one there is rights in further catalogs.

    It may manage the content of each catalog (CATALOG_MANAGE_CONTENT): to drop, read and write tables.

    Example: `cynosure delegation init --credentials-file delegation.json`
    """

    async def work(server: "Server") -> tuple[bool, list[str]]:
        from contextlib import suppress

        from cynosure.client.management_types import Grant
        from cynosure.common.errors import AlreadyExists

        management = server.management
        names = catalogs or [each.name for each in await management.list_catalogs()]
        is_new = await make_service_principal(server, principal, credentials_file)
        for name in names:
            with suppress(AlreadyExists):
                await management.create_catalog_role(name, principal, {})
            await management.grant(name, principal, Grant(type="catalog", privilege="CATALOG_MANAGE_CONTENT"))
            await management.assign_catalog_role(principal, name, principal)
        return is_new, names

    is_new, names = to.run(work, initialise=True)
    if to.as_json:
        print_json(
            {
                "principal": principal,
                "created": is_new,
                "catalogs": names,
                "credentialsFile": str(credentials_file) if is_new else None,
            }
        )
        return
    print(f"Principal {principal} may work in: {', '.join(names) or 'no catalog yet'}.")
    if is_new:
        tell(f"Its credentials are in {credentials_file}. Start the service with them:")
        tell(f"  cynosure serve delegation --credentials-file {credentials_file}")
        tell("and tell the catalog where it is: delegation.endpoint, and delegation.tls beyond this machine.")
    else:
        tell("It was there already; its credentials are as they were.")
