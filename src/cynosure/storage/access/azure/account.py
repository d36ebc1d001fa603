"""The storage account of a configuration: its name, and where it is reached.

A maintainer must not break: the address is a host of Azure that the allowed locations name, or the endpoint
of the configuration; `check_config` has looked at both.
"""

from msgspec import Struct

from cynosure.storage.check_config import AUTHORITIES, find_cloud
from cynosure.storage.config import AzureStorage, allowed_locations

_PUBLIC = "core.windows.net"


class Account(Struct, frozen=True):
    """One account, as the server reaches it."""

    name: str
    url: str
    """Of its blob service, without a slash at the end; containers follow."""
    authority_url: str
    """Of the service that gives tokens, with the tenant."""

    @classmethod
    def of(cls, config: AzureStorage) -> "Account":
        """The account that the allowed locations are in."""
        place = allowed_locations(config)[0]
        host = place.authority.partition("@")[2]
        name = host.partition(".")[0]
        if config.endpoint is None:
            url = f"https://{host.replace('.dfs.', '.blob.', 1)}"
        else:
            url = f"{config.endpoint.removesuffix('/')}/{name}"
        authority = config.authority_host or AUTHORITIES[find_cloud(place) or _PUBLIC]
        return cls(name, url, f"{authority.removesuffix('/')}/{config.tenant_id}")


def client_config(config: AzureStorage) -> dict[str, str]:
    """What every client is told about the account."""
    found = {"adls.account-name": Account.of(config).name}
    if config.endpoint is not None:
        scheme, _, place = config.endpoint.removesuffix("/").partition("://")
        for service in ("blob", "dfs"):
            found[f"adls.{service}-storage-authority"] = place
            found[f"adls.{service}-storage-scheme"] = scheme
    return found
