"""`cynosure delegation …`: a principal for a delegation service.

A maintainer must not break: the secret goes into a file of mode 0600 and nowhere else, and the file is made
before the secret is.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.credentials import CredentialsFile
from cynosure.cli.output import print_json, tell
from cynosure.cli.remote import Remote, connected

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
    file: CredentialsFile | None = None

    async def work(server: "Server") -> tuple[bool, list[str]]:
        nonlocal file
        from contextlib import suppress

        from cynosure.client.management_types import Grant
        from cynosure.common.errors import AlreadyExists, NotFound

        management = server.management
        names = catalogs or [each.name for each in await management.list_catalogs()]
        with suppress(AlreadyExists):
            await management.create_principal_role(principal, {})
        try:
            await management.load_principal(principal)
            is_new = False
        except NotFound:
            file = CredentialsFile.open(credentials_file)
            made = await management.create_principal(principal, {})
            if file is not None:
                file.add(principal, made.credentials)
            is_new = True
        await management.assign_principal_role(principal, principal)
        for name in names:
            with suppress(AlreadyExists):
                await management.create_catalog_role(name, principal, {})
            await management.grant(name, principal, Grant(type="catalog", privilege="CATALOG_MANAGE_CONTENT"))
            await management.assign_catalog_role(principal, name, principal)
        return is_new, names

    try:
        is_new, names = to.run(work, initialise=True)
    finally:
        if file is not None:
            file.remove_if_empty()
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
