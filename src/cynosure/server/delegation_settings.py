"""Settings of delegated work that are fine one by one and wrong together.

A maintainer must not break: this imports nothing heavy, because every command on a data directory reads
settings.
"""

from datetime import timedelta
from pathlib import Path

from cynosure.common.addresses import is_loopback, is_safe_url
from cynosure.common.delegated.settings import ClientTlsSettings, DelegationSettings, ServiceSettings
from cynosure.common.errors import Misconfigured


def check_delegation(settings: DelegationSettings, *, request_timeout: timedelta) -> None:
    """Refuse what neither a catalog nor a service could work with."""
    if settings.task_type == "delegated" and settings.endpoint is None:
        raise Misconfigured(
            "Work is to be delegated, and nobody says to whom",
            key="delegation.endpoint",
            fix="Set delegation.endpoint to the address of a delegation service, or task_type to local.",
        )
    if settings.endpoint is not None and not is_safe_url(settings.endpoint):
        raise _not_safe("delegation.endpoint")
    if settings.sync_timeout >= request_timeout:
        raise Misconfigured(
            "A request to purge would wait for longer than anybody waits for its answer",
            key="delegation.sync_timeout",
            fix="Make delegation.sync_timeout shorter than server.request_timeout.",
        )
    if not is_safe_url(settings.service.catalog_url):
        raise _not_safe("delegation.service.catalog_url")
    _check_client(settings.tls, "delegation.tls")
    _check_client(settings.service.catalog_tls, "delegation.service.catalog_tls")
    _check_listener(settings.service)


def check_service(service: ServiceSettings) -> None:
    """Refuse to serve where others could listen, or without a way into the catalog."""
    if service.certificate is None and not is_loopback(service.host):
        raise Misconfigured(
            "A delegation service beyond this machine must know its clients, and they it",
            host=service.host,
            fix="Set delegation.service.certificate, key and client_ca (`cynosure certs init` makes them), "
            "or listen on 127.0.0.1.",
        )
    is_named = service.client_id is not None and service.client_secret is not None
    if is_named == (service.credentials_file is not None):
        raise Misconfigured(
            "The service needs one principal of its own at the catalog",
            key="delegation.service.credentials_file",
            fix="Set delegation.service.credentials_file to what `cynosure delegation init` wrote, or "
            "client_id and client_secret; not both.",
        )


def _check_listener(service: ServiceSettings) -> None:
    _check_pair(service.certificate, service.key, "delegation.service")
    if (service.client_ca is None) != (service.certificate is None):
        raise Misconfigured(
            "Over TLS the service demands certificates of its clients, and only over TLS",
            key="delegation.service.client_ca",
            fix="Set delegation.service.certificate, key and client_ca, or none of them.",
        )
    if not service.client_names:
        raise Misconfigured(
            "Nobody could give orders to the service",
            key="delegation.service.client_names",
            fix="Name the clients as their certificates do: cynosure-catalog, say.",
        )


def _check_client(tls: ClientTlsSettings, key: str) -> None:
    _check_pair(tls.certificate, tls.key, key)


def _check_pair(certificate: Path | None, key: Path | None, table: str) -> None:
    if (certificate is None) != (key is None):
        raise Misconfigured(
            "TLS needs both a certificate and its key",
            key=table,
            fix=f"Set both {table}.certificate and {table}.key, or neither.",
        )


def _not_safe(key: str) -> Misconfigured:
    return Misconfigured(
        "Orders and tokens would cross a network that others can listen to",
        key=key,
        fix="Use https://; plain HTTP only on this machine (127.0.0.1, localhost).",
    )
