"""What `cynosure up` gives to its catalog and its gateway so that they find and trust each other.

A maintainer must not break: the gateway has a principal of its own, which the catalog makes
(`query.provision`); it listens on this machine only unless the settings say otherwise, with their
certificate.
"""

from typing import Final

from cynosure.common.addresses import is_loopback
from cynosure.server.catalog_storage import file_roots
from cynosure.server.gateway_settings import find_missing_extras
from cynosure.server.listen import listen_tcp
from cynosure.server.settings import Settings
from cynosure.server.up_service import UpService, catalog_url, find_reason_against_catalog, listen_here

_TABLE: Final = "query.gateway"


def find_reason_against_gateway(settings: Settings) -> str | None:
    """Why `up` starts no gateway; `None` when it does."""
    gateway = settings.query.gateway
    if gateway.enabled == "off":
        return "query.gateway.enabled is off"
    if find_missing_extras(settings.query):
        return "its packages are not here (pip install 'cynosure[query]')"
    if gateway.certificate is None and not is_loopback(gateway.host):
        return "query.gateway.host is on a network, and query.gateway.certificate is not set"
    return find_reason_against_catalog(
        settings, has_ca=gateway.catalog_tls.ca is not None, key=f"{_TABLE}.catalog_tls.ca"
    )


def prepare_gateway(settings: Settings, catalog_port: int) -> UpService:
    """Bind the gateway's port and say where its credentials will be."""
    directory = settings.server.data_dir.absolute() / "gateway"
    directory.mkdir(mode=0o700, exist_ok=True)
    credentials = str(directory / "credentials.json")
    gateway = settings.query.gateway
    is_here = is_loopback(gateway.host)
    listener = listen_here(gateway.port) if is_here else listen_tcp(gateway.host, gateway.port)
    return UpService(
        listener,
        {"query.provision": credentials},
        {
            f"{_TABLE}.catalog_url": catalog_url(settings, catalog_port),
            f"{_TABLE}.credentials_file": credentials,
            f"{_TABLE}.file_locations": [
                *gateway.file_locations,
                *(root.text for root in file_roots(settings)),
            ],
        },
    )
