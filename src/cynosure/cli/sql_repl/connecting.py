"""The gateway and the catalog that the flags of `cynosure sql` mean, and who asks there.

A maintainer must not break: a token goes to the gateway that the user named, to the one that their profile
names, or to one on the host of the catalog that gave it; nowhere else.
"""

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from cynosure.cli import light as _  # noqa: F401 - before httpx
from cynosure.cli import options
from cynosure.cli.flags import Flags, Local, choose_server
from cynosure.cli.transport import check_url, find_credentials, tls_of
from cynosure.cli.waiting import tell_wait
from cynosure.client.api import ApiClient, realm_headers
from cynosure.client.catalog import CatalogApi
from cynosure.client.http import HttpClient
from cynosure.client.management import Management
from cynosure.client.profiles import Profile, load_profiles, profiles_path
from cynosure.client.query import QueryApi
from cynosure.client.tokens import TokenSource
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError, Misconfigured, NotAuthenticated

_PORT: Final = 8184
_VARIABLE: Final = "CYNOSURE_GATEWAY"


class _Root(Struct):
    client_id: str
    client_secret: str


@dataclass(frozen=True, slots=True)
class Connection:
    """A gateway that answers, and the catalog behind it."""

    query: QueryApi
    catalog_api: ApiClient
    gateway_url: str

    async def list_catalogs(self) -> list[str]:
        """Names of catalogs, as far as this user may see them."""
        try:
            return [each.name for each in await Management(self.catalog_api).list_catalogs()]
        except NotAuthenticated:
            raise
        except CynosureError:
            return []

    def catalog(self, name: str) -> CatalogApi:
        """A catalog, for proposals of names."""
        return CatalogApi(self.catalog_api, name)


@asynccontextmanager
async def open_connection(to: Flags, gateway: str | None) -> AsyncIterator[Connection]:
    """Connect as these flags say. Nothing is sent before the first statement."""
    chosen = choose_server(to, os.environ, load_profiles(profiles_path(os.environ)))
    profile = _find_local(to, gateway) if isinstance(chosen, Local) else chosen
    is_plain_allowed = to.plain_http or profile.plain_http
    base = check_url(profile.url, is_plain_allowed=is_plain_allowed)
    named = gateway or os.environ.get(_VARIABLE) or profile.gateway or beside(base)
    url = check_url(named, is_plain_allowed=is_plain_allowed, field="--gateway")
    realm = to.realm or os.environ.get("CYNOSURE_REALM") or profile.realm or None
    credentials = find_credentials(to, os.environ, profile)
    clock = SystemClock()
    rng = random.Random()  # noqa: S311 - jitter only
    async with (
        HttpClient(
            base, clock=clock, rng=rng, tls=tls_of(to, profile, base), is_patient=False, on_wait=tell_wait
        ) as there,
        HttpClient(
            url, clock=clock, rng=rng, tls=tls_of(to, profile, url), is_patient=False, on_wait=tell_wait
        ) as here,
    ):
        tokens = TokenSource(there, credentials, clock, headers=realm_headers(realm))
        yield Connection(
            QueryApi(ApiClient(here, tokens=tokens, realm=realm)),
            ApiClient(there, tokens=tokens, realm=realm),
            url,
        )


def beside(catalog_url: str) -> str:
    """Where a gateway is when nobody says: on the catalog's host."""
    parts = urlsplit(catalog_url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{_PORT}"


def _find_local(to: Flags, gateway: str | None) -> Profile:
    """The server of a data directory; as root unless somebody else is named, as other commands are there."""
    from cynosure.server.gateway_address import find_address

    source = options.make_source(to.config, {"server.data_dir": to.data, "persistence.url": to.store})
    settings = source.load()
    data_dir = settings.server.data_dir
    address = find_address(data_dir)
    if address is None:
        raise Misconfigured(
            "No gateway runs on this data directory",
            fix="Start one with `cynosure up` (pip install 'cynosure[query]'), name another directory with "
            "--data, or a server with --url and --gateway.",
            data_dir=str(data_dir),
        )
    root = _read_root(data_dir)
    ca = settings.query.gateway.catalog_tls.ca
    return Profile(
        url=address.catalog_url,
        client_id="" if root is None else root.client_id,
        client_secret="" if root is None else root.client_secret,
        gateway=gateway or address.url,
        tls_ca="" if ca is None else str(ca),
    )


def _read_root(data_dir: Path) -> _Root | None:
    try:
        return msgspec.json.decode((data_dir / "root-credentials.json").read_bytes(), type=_Root)
    except (OSError, msgspec.DecodeError):
        return None
