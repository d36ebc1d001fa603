"""`cynosure certs`: certificates for tests and small installations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli import options
from cynosure.cli.output import print_json, tell

if TYPE_CHECKING:
    from cynosure.server.certs import CertificateInfo

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make and show TLS certificates, for tests and small installations.",
)

Directory = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where the files are.")]


@app.command("init")
def init(
    directory: Directory = Path("certs"),
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="Name or address of the server; may be repeated."),
    ] = None,
    client: Annotated[str, typer.Option("--client", metavar="NAME", help="Name of the client.")] = "client",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="How long they are valid.")] = 825,
    as_json: options.Json = False,
) -> None:
    """Make an authority, a server certificate and client certificates.

    Two of the clients are our own services, for when they call each other: the catalog (`catalog.pem`) and
    the delegation service (`delegation.pem`).

    The authority's key lies beside them, unencrypted: keep the directory to yourself. Nothing that
    exists is overwritten.

    Example: `cynosure certs init --dir certs --host catalog.example.org`
    """
    from cynosure.common.clock import SystemClock
    from cynosure.server import certs

    hosts = host or ["localhost", "127.0.0.1", "::1"]
    made = certs.init_certs(directory, hosts=hosts, client=client, days=days, clock=SystemClock())
    _print(made, as_json)
    if not as_json:
        tell(
            "Serve with them:  cynosure serve catalog"
            f" --tls-cert {directory / certs.SERVER_CERTIFICATE} --tls-key {directory / certs.SERVER_KEY}"
            f" --tls-client-ca {directory / certs.CA_CERTIFICATE}"
        )
        tell(
            "Let services call each other with catalog.pem and delegation.pem: docs/operations/delegation.md"
        )


@app.command("show")
def show(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory or a PEM file.")] = Path("certs"),
    as_json: options.Json = False,
) -> None:
    """Show whom certificates name and how long they are valid."""
    from cynosure.common.clock import SystemClock
    from cynosure.server.certs import show_certs

    _print(show_certs(path, clock=SystemClock()), as_json)


def _print(found: "list[CertificateInfo]", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for certificate in found:
        names = f" ({', '.join(certificate.names)})" if certificate.names else ""
        validity = "EXPIRED" if certificate.is_expired else "valid until"
        print(f"{certificate.file}: {certificate.subject}{names}")
        print(f"  issued by {certificate.issuer}, {validity} {certificate.not_after:%Y-%m-%d %H:%M} UTC")
        print(f"  SHA-256 {certificate.sha256}")
