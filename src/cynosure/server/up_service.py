"""What `cynosure up` needs for any service beside its catalog: a port that is bound already.

A maintainer must not break: the port is bound before anything is started, so that requests wait for a
service that is being started again, and nobody else can take its place.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cynosure.common.addresses import is_safe_url
from cynosure.common.errors import Misconfigured
from cynosure.server.listen import listen_tcp
from cynosure.server.settings import Settings

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class UpService:
    """A service beside the catalog."""

    listener: socket.socket
    for_catalog: Mapping[str, Any]
    """Settings of the catalog, by dotted name."""
    for_service: Mapping[str, Any]
    """Settings of the service."""


def choose_port(settings: Settings) -> int:
    """The catalog's port: services must know it before the catalog has bound it."""
    if settings.server.port:
        return settings.server.port
    with listen_tcp(settings.server.host, 0) as probe:
        port: int = probe.getsockname()[1]
        return port


def find_reason_against_catalog(settings: Settings, *, has_ca: bool, key: str) -> str | None:
    """Why no service of this machine can reach the catalog safely; `None` when it can."""
    if settings.server.tls.certificate is not None and not has_ca:
        return f"server.tls is set, and {key} does not say whom to trust there"
    if not is_safe_url(catalog_url(settings, settings.server.port or 1)):
        return "the catalog listens on a network without server.tls"
    return None


def catalog_url(settings: Settings, port: int) -> str:
    """Where services of this machine reach the catalog."""
    server = settings.server
    host = {"": HOST, "0.0.0.0": HOST, "::": "::1"}.get(server.host, server.host)  # noqa: S104 - compared only
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if server.tls.certificate is None else 'https'}://{shown}:{port}"


def listen_here(port: int) -> socket.socket:
    """A socket of this machine; on another port where that one is taken."""
    try:
        return listen_tcp(HOST, port)
    except Misconfigured:
        return listen_tcp(HOST, 0)
