"""Flags that several commands share, and the settings they stand for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cynosure.server.settings import SettingsSource

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings file. Default: $CYNOSURE_CONFIG, else cynosure.toml here if it exists.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data directory (server.data_dir). Default: ./data"),
]
Realm = Annotated[
    str,
    typer.Option(
        "--realm", metavar="NAME", envvar="CYNOSURE_REALM", help="The realm that the catalog is in."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes a free one.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="Worker processes.")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Store: memory:, sqlite:PATH or postgresql://… Other users of this machine can see flags; "
        "put a password into the settings file or $CYNOSURE_PERSISTENCE__URL instead.",
    ),
]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Serve HTTPS with this.")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate.")]
TlsClientCa = Annotated[
    Path | None,
    typer.Option("--tls-client-ca", metavar="FILE", help="Require client certificates of this authority."),
]


def make_source(config: Path | None, flags: Mapping[str, Any]) -> "SettingsSource":
    """Settings from file, environment and these flags, by dotted name; `None` is a flag not given."""
    from cynosure.server.settings import SettingsSource

    given = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in flags.items()
        if value is not None
    }
    return SettingsSource(str(config) if config else None, given)
