"""`cynosure up`, and `cynosure serve` of a catalog, a delegation service, a gateway."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cynosure.cli import light as _  # noqa: F401 - before httpx
from cynosure.cli import options
from cynosure.cli.output import tell

app = typer.Typer(
    no_args_is_help=True, help="Run one service in the foreground.", rich_markup_mode="markdown"
)

TaskStore = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Store of tasks: sqlite:PATH or postgresql://… Default: delegation.db in the data directory. "
        "Put a password into the settings file or $CYNOSURE_DELEGATION__SERVICE__STORE instead.",
    ),
]
ServiceRealm = Annotated[
    str | None, typer.Option("--realm", metavar="NAME", help="The one realm that it works for.")
]
CatalogUrl = Annotated[str | None, typer.Option("--catalog", metavar="URL", help="Where the catalog is.")]
ServiceCredentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials-file", metavar="FILE", help="What `cynosure delegation init` wrote: its own principal."
    ),
]

GatewayCredentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials-file", metavar="FILE", help="What `cynosure gateway init` wrote: its own principal."
    ),
]


@app.callback()
def serve() -> None:
    """Run one service in the foreground. `cynosure up` runs all of them."""


@app.command("catalog")
def serve_catalog(
    config: options.Config = None,
    data: options.Data = None,
    host: options.Host = None,
    port: options.Port = None,
    store: options.Store = None,
    workers: options.Workers = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    tls_client_ca: options.TlsClientCa = None,
) -> None:
    """Serve the catalog until ctrl-C or SIGTERM; requests in work are finished first.

    Renewed certificate files are read by themselves, or at once on SIGHUP.

    Example: `cynosure serve catalog --data ./data --port 8181 --workers 2`
    """
    from cynosure.server.run import run_catalog

    flags = _flags(data, host, port, store, workers, tls_cert, tls_key, tls_client_ca)
    run_catalog(options.make_source(config, flags), lambda ready: tell(f"Catalog is ready at {ready.url}"))


@app.command("delegation")
def serve_delegation(
    config: options.Config = None,
    data: options.Data = None,
    host: options.Host = None,
    port: options.Port = None,
    store: TaskStore = None,
    realm: ServiceRealm = None,
    catalog: CatalogUrl = None,
    credentials_file: ServiceCredentials = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    tls_client_ca: options.TlsClientCa = None,
) -> None:
    """Serve one realm's long work, purges and maintenance, until ctrl-C or SIGTERM; it is given back then.

    It has a store of its own and a principal of its own at the catalog: `cynosure delegation init` makes it.
    Beyond this machine it needs certificates, of its own and of its clients.

    Example: `cynosure serve delegation --port 8182 --credentials-file delegation.json`
    """
    from cynosure.server.delegation import DELEGATION
    from cynosure.server.service_process import run_service

    flags = {
        "server.data_dir": data,
        "delegation.service.host": host,
        "delegation.service.port": port,
        "delegation.service.store": store,
        "delegation.service.realm": realm,
        "delegation.service.catalog_url": catalog,
        "delegation.service.credentials_file": credentials_file,
        "delegation.service.certificate": tls_cert,
        "delegation.service.key": tls_key,
        "delegation.service.client_ca": tls_client_ca,
    }
    source = options.make_source(config, flags)
    run_service(DELEGATION, source, lambda ready: tell(f"Delegation service is ready at {ready.url}"))


@app.command("gateway")
def serve_gateway(
    config: options.Config = None,
    data: options.Data = None,
    host: options.Host = None,
    port: options.Port = None,
    catalog: CatalogUrl = None,
    credentials_file: GatewayCredentials = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
) -> None:
    """Serve SQL over the catalog's tables until ctrl-C or SIGTERM; statements get a moment to finish then.

    It has no store, and a principal of its own at the catalog, with which it asks on behalf of its users:
    `cynosure gateway init` makes it. Beyond this machine it needs a certificate.

    Example: `cynosure serve gateway --port 8184 --credentials-file gateway.json`
    """
    from cynosure.server.gateway import GATEWAY
    from cynosure.server.service_process import run_service

    flags = {
        "server.data_dir": data,
        "query.gateway.host": host,
        "query.gateway.port": port,
        "query.gateway.catalog_url": catalog,
        "query.gateway.credentials_file": credentials_file,
        "query.gateway.certificate": tls_cert,
        "query.gateway.key": tls_key,
    }
    source = options.make_source(config, flags)
    run_service(GATEWAY, source, lambda ready: tell(f"Gateway is ready at {ready.url}"))


def up(
    config: options.Config = None,
    data: options.Data = None,
    host: options.Host = None,
    port: options.Port = None,
    store: options.Store = None,
    workers: options.Workers = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    tls_client_ca: options.TlsClientCa = None,
) -> None:
    """Run everything on this machine, with embedded defaults, until ctrl-C or SIGTERM.

    That is the catalog, a delegation service for its purges and maintenance, and a gateway for SQL if its
    packages are here. Services that crash are started again.

    Example: `cynosure up --data ./data`
    """
    from cynosure.server.up import run_up

    flags = _flags(data, host, port, store, workers, tls_cert, tls_key, tls_client_ca)
    source = options.make_source(config, flags)

    def on_ready(ready: Mapping[str, Any]) -> None:
        for name, facts in ready.items():
            tell(f"{name:<10} {facts['url']}")
            if "catalogs" not in facts:
                continue
            catalogs = ", ".join(facts["catalogs"]) or "none yet, see cynosure catalogs create"
            tell(f"{'iceberg':<10} {facts['url']}/api/catalog (warehouse: {catalogs})")
        tell(f"{'data':<10} {source.load().server.data_dir.absolute()}")
        tell("Everything is ready. Stop with ctrl-C.")

    run_up(
        source,
        on_wait=lambda name, pid: tell(f"Waiting until the previous {name} (pid {pid}) has ended ..."),
        on_ready=on_ready,
        on_note=tell,
    )


def _flags(
    data: Path | None,
    host: str | None,
    port: int | None,
    store: str | None,
    workers: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
) -> dict[str, Any]:
    return {
        "server.data_dir": data,
        "server.host": host,
        "server.port": port,
        "server.workers": workers,
        "server.tls.certificate": tls_cert,
        "server.tls.key": tls_key,
        "server.tls.client_ca": tls_client_ca,
        "persistence.url": store,
    }
