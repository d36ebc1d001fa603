"""Rules about TLS, addresses and principals that the settings of several services share.

A maintainer must not break: this imports nothing heavy, because every command on a data directory reads
settings.
"""

from pathlib import Path
from typing import Protocol

from cynosure.common.addresses import is_safe_url
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret


class OwnPrincipal(Protocol):
    """Settings of a service that name its principal."""

    @property
    def client_id(self) -> str | None: ...  # noqa: D102 - see the settings
    @property
    def client_secret(self) -> Secret | None: ...  # noqa: D102
    @property
    def credentials_file(self) -> Path | None: ...  # noqa: D102


def require_pair(certificate: Path | None, key: Path | None, table: str) -> None:
    """Refuse a certificate without its key, and the other way round."""
    if (certificate is None) != (key is None):
        raise Misconfigured(
            "TLS needs both a certificate and its key",
            key=table,
            fix=f"Set both {table}.certificate and {table}.key, or neither.",
        )


def require_safe_url(url: str, key: str) -> None:
    """Refuse an address to which tokens would go in clear over a network."""
    if not is_safe_url(url):
        raise Misconfigured(
            "Orders and tokens would cross a network that others can listen to",
            key=key,
            fix="Use https://; plain HTTP only on this machine (127.0.0.1, localhost).",
        )


def require_principal(service: OwnPrincipal, *, table: str, command: str) -> None:
    """Refuse settings that name no principal, or two. `command` makes one; `table` is where it is named."""
    is_named = service.client_id is not None and service.client_secret is not None
    if is_named == (service.credentials_file is not None):
        raise Misconfigured(
            "The service needs one principal of its own at the catalog",
            key=f"{table}.credentials_file",
            fix=f"Set {table}.credentials_file to what `{command}` wrote, or client_id and client_secret; "
            "not both.",
        )
