"""Settings of governed SQL that are fine one by one and wrong together.

A maintainer must not break: this imports nothing heavy, because every command on a data directory reads
settings.
"""

from importlib.util import find_spec
from typing import Final

from cynosure.common.addresses import is_loopback
from cynosure.common.errors import Misconfigured
from cynosure.query.settings import QuerySettings
from cynosure.server.safe_settings import require_pair, require_principal, require_safe_url

_TABLE: Final = "query.gateway"
EXTRA_FIX: Final = "Run: pip install 'cynosure[query]'"
SPARK_FIX: Final = "Run: pip install 'cynosure[spark]', and install Java 17 or newer."
_READERS: Final = ("pyarrow", "duckdb", "datafusion")


def check_query(settings: QuerySettings) -> None:
    """Refuse what no gateway could work with."""
    gateway = settings.gateway
    require_safe_url(gateway.catalog_url, f"{_TABLE}.catalog_url")
    require_pair(gateway.certificate, gateway.key, _TABLE)
    require_pair(gateway.catalog_tls.certificate, gateway.catalog_tls.key, f"{_TABLE}.catalog_tls")
    if settings.local_execution == "off" and settings.spark.enabled == "off":
        raise Misconfigured(
            "No engine could run a statement",
            key="query.local_execution",
            fix="Set query.local_execution to on, or query.spark.enabled to auto or on.",
        )


def check_gateway(settings: QuerySettings) -> None:
    """Refuse to serve where others could listen, or without a way into the catalog."""
    gateway = settings.gateway
    if gateway.certificate is None and not is_loopback(gateway.host):
        raise Misconfigured(
            "Tokens and rows would cross the network in clear",
            host=gateway.host,
            fix="Set query.gateway.certificate and key (`cynosure certs init` makes some), or listen on "
            "127.0.0.1 and put a TLS proxy in front.",
        )
    require_principal(gateway, table=_TABLE, command="cynosure gateway init")
    missing = find_missing_extras(settings)
    if missing:
        raise Misconfigured("The gateway needs packages that are not here", fix=EXTRA_FIX, missing=missing)


def find_missing_extras(settings: QuerySettings) -> tuple[str, ...]:
    """Packages of the extra `query` that a gateway with these settings needs and that are not installed."""
    needed = _READERS if settings.local_execution == "on" else _READERS[:1]
    return tuple(each for each in needed if find_spec(each) is None)
