"""What `cynosure up` gives to its catalog and its delegation service so that they find and trust each other.

Everything is made below DATA/delegation: certificates of an authority of its own, and the credentials of the
service's principal, which the catalog makes.

A maintainer must not break: keys stay in a directory of mode 0700, and are renewed long before they expire.
"""

import shutil
import time
from pathlib import Path
from typing import Final

from cynosure.common.clock import SystemClock
from cynosure.server.catalog_storage import file_roots
from cynosure.server.listen import url_of
from cynosure.server.settings import Settings
from cynosure.server.up_service import (
    HOST,
    UpService,
    catalog_url,
    find_reason_against_catalog,
    listen_here,
)

_DAYS: Final = 825
_RENEWED_AFTER_S: Final = 700 * 86_400.0
_CERTS: Final = "certs"
_FILES: Final = ("ca.pem", "server.pem", "server.key", "catalog.pem", "catalog.key")


def find_reason_against(settings: Settings) -> str | None:
    """Why `up` starts no delegation service of its own; `None` when it does."""
    delegation = settings.delegation
    if delegation.task_type == "local":
        return "delegation.task_type is local"
    if delegation.endpoint is not None:
        return "delegation.endpoint names another one"
    return find_reason_against_catalog(
        settings,
        has_ca=delegation.service.catalog_tls.ca is not None,
        key="delegation.service.catalog_tls.ca",
    )


def prepare_delegation(settings: Settings, catalog_port: int) -> UpService:
    """Bind the service's port and make what both sides need."""
    directory = settings.server.data_dir.absolute() / "delegation"
    directory.mkdir(mode=0o700, exist_ok=True)
    certs = _ensure_certs(directory / _CERTS)
    credentials = str(directory / "credentials.json")
    listener = listen_here(settings.delegation.service.port)
    service = "delegation.service"
    return UpService(
        listener,
        {
            "delegation.task_type": "delegated",
            "delegation.endpoint": url_of(listener, HOST, is_tls=True),
            "delegation.tls.ca": str(certs / "ca.pem"),
            "delegation.tls.certificate": str(certs / "catalog.pem"),
            "delegation.tls.key": str(certs / "catalog.key"),
            "delegation.provision": credentials,
        },
        {
            f"{service}.host": HOST,
            f"{service}.certificate": str(certs / "server.pem"),
            f"{service}.key": str(certs / "server.key"),
            f"{service}.client_ca": str(certs / "ca.pem"),
            f"{service}.catalog_url": catalog_url(settings, catalog_port),
            f"{service}.credentials_file": credentials,
            f"{service}.file_locations": [
                *settings.delegation.service.file_locations,
                *(root.text for root in file_roots(settings)),
            ],
        },
    )


def _ensure_certs(directory: Path) -> Path:
    # By age: reading them would cost every start more than all else that is done here.
    ages_s = [_age_s(directory / name) for name in _FILES]
    if all(age_s is not None and age_s < _RENEWED_AFTER_S for age_s in ages_s):
        return directory
    from cynosure.server.certs import init_certs  # noqa: PLC0415 - needed at the first start only

    shutil.rmtree(directory, ignore_errors=True)
    hosts = [HOST, "localhost"]
    init_certs(directory, hosts=hosts, client="operator", days=_DAYS, clock=SystemClock())
    return directory


def _age_s(path: Path) -> float | None:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return None
