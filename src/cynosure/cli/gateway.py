"""`cynosure gateway …`: a principal for a gateway for SQL.

A maintainer must not break: the secret goes into a file of mode 0600 and nowhere else, and the file is made
before the secret is.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.output import print_json, tell
from cynosure.cli.remote import Remote, connected

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="A principal for a gateway for SQL, which may act on behalf of its users.",
)

_NAME = "cynosure-gateway"


@app.callback()
def gateway() -> None:
    """A principal for a gateway for SQL, which may act on behalf of its users."""


@app.command()
@connected
def init(
    to: Remote,
    principal: Annotated[str, typer.Option("--principal", metavar="NAME", help="Name of it.")] = _NAME,
    credentials_file: Annotated[
        Path, typer.Option("--credentials-file", metavar="FILE", help="Where its credentials are written.")
    ] = Path("gateway-credentials.json"),
) -> None:
    """Make a principal for a gateway: a trusted service, that may do for users what they may do themselves.

    It gets no rights of its own. Row filters that ask a mapping table need one: grant TABLE_READ_DATA on that
    table to the principal role of the same name.

    Example: `cynosure gateway init --credentials-file gateway.json`
    """

    async def work(server: "Server") -> bool:
        from cynosure.cli.service_principals import make_service_principal

        return await make_service_principal(server, principal, credentials_file, is_trusted=True)

    is_new = to.run(work, initialise=True)
    if to.as_json:
        print_json(
            {
                "principal": principal,
                "created": is_new,
                "credentialsFile": str(credentials_file) if is_new else None,
            }
        )
        return
    print(f"Principal {principal} may act on behalf of others.")
    if is_new:
        tell(f"Its credentials are in {credentials_file}. Start the gateway with them:")
        tell(f"  cynosure serve gateway --credentials-file {credentials_file}")
    else:
        file = str(credentials_file)
        tell(f"It was there already: its credentials are as they were, and {file} was not written.")
        tell("For another gateway: --principal NAME makes another one. For new credentials of this one:")
        tell(
            "  "
            + shlex.join(
                ("cynosure", "principals", "rotate-credentials", principal, "--credentials-file", file)
            )
        )
