"""What `cynosure up` gives to its catalog and its delegation service so that they find and trust each other.

Everything is made below DATA/delegation: certificates of an authority of its own, and the credentials of the
service's principal, which the catalog makes.

A maintainer must not break: the port is bound before anything is started, so that orders wait for a service
that is being started again, and nobody else can take its place.
"""

import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cynosure.common.addresses import is_safe_url
from cynosure.common.clock import SystemClock
from cynosure.common.errors import Misconfigured
from cynosure.server.catalog_storage import file_roots
from cynosure.server.listen import listen_tcp, url_of
from cynosure.server.settings import Settings

_HOST: Final = "127.0.0.1"
_DAYS: Final = 825
_RENEWED_AFTER_S: Final = 700 * 86_400.0
_CERTS: Final = "certs"
_FILES: Final = ("ca.pem", "server.pem", "server.key", "catalog.pem", "catalog.key")


@dataclass(frozen=True, slots=True)
class UpDelegation:
    """A delegation service beside the catalog."""

    listener: socket.socket
    for_catalog: Mapping[str, Any]
    """Settings of the catalog, by dotted name."""
    for_service: Mapping[str, Any]
    """Settings of the service."""


def find_reason_against(settings: Settings) -> str | None:
    """Why `up` starts no delegation service of its own; `None` when it does."""
    delegation = settings.delegation
    if delegation.task_type == "local":
        return "delegation.task_type is local"
    if delegation.endpoint is not None:
        return "delegation.endpoint names another one"
    if settings.server.tls.certificate is not None and delegation.service.catalog_tls.ca is None:
        return "server.tls is set, and delegation.service.catalog_tls.ca does not say whom to trust there"
    if not is_safe_url(_catalog_url(settings, settings.server.port or 1)):
        return "the catalog listens on a network without server.tls"
    return None


def prepare_delegation(settings: Settings, catalog_port: int) -> UpDelegation:
    """Bind the service's port and make what both sides need."""
    directory = settings.server.data_dir.absolute() / "delegation"
    directory.mkdir(mode=0o700, exist_ok=True)
    certs = _ensure_certs(directory / _CERTS)
    credentials = str(directory / "credentials.json")
    listener = _listen(settings.delegation.service.port)
    service = "delegation.service"
    return UpDelegation(
        listener,
        {
            "delegation.task_type": "delegated",
            "delegation.endpoint": url_of(listener, _HOST, is_tls=True),
            "delegation.tls.ca": str(certs / "ca.pem"),
            "delegation.tls.certificate": str(certs / "catalog.pem"),
            "delegation.tls.key": str(certs / "catalog.key"),
            "delegation.provision": credentials,
        },
        {
            f"{service}.host": _HOST,
            f"{service}.certificate": str(certs / "server.pem"),
            f"{service}.key": str(certs / "server.key"),
            f"{service}.client_ca": str(certs / "ca.pem"),
            f"{service}.catalog_url": _catalog_url(settings, catalog_port),
            f"{service}.credentials_file": credentials,
            f"{service}.file_locations": [
                *settings.delegation.service.file_locations,
                *(root.text for root in file_roots(settings)),
            ],
        },
    )


def choose_port(settings: Settings) -> int:
    """The catalog's port: the service must know it before the catalog has bound it."""
    if settings.server.port:
        return settings.server.port
    with listen_tcp(settings.server.host, 0) as probe:
        port: int = probe.getsockname()[1]
        return port


def _catalog_url(settings: Settings, port: int) -> str:
    server = settings.server
    host = {"": _HOST, "0.0.0.0": _HOST, "::": "::1"}.get(server.host, server.host)  # noqa: S104 - compared only
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if server.tls.certificate is None else 'https'}://{shown}:{port}"


def _listen(port: int) -> socket.socket:
    try:
        return listen_tcp(_HOST, port)
    except Misconfigured:
        # Nobody but the catalog needs to know it.
        return listen_tcp(_HOST, 0)


def _ensure_certs(directory: Path) -> Path:
    # By age: reading them would cost every start more than all else that is done here.
    ages_s = [_age_s(directory / name) for name in _FILES]
    if all(age_s is not None and age_s < _RENEWED_AFTER_S for age_s in ages_s):
        return directory
    from cynosure.server.certs import init_certs  # noqa: PLC0415 - needed at the first start only

    shutil.rmtree(directory, ignore_errors=True)
    hosts = [_HOST, "localhost"]
    init_certs(directory, hosts=hosts, client="operator", days=_DAYS, clock=SystemClock())
    return directory


def _age_s(path: Path) -> float | None:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return None
