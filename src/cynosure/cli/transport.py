"""The way to a server: over the network as a principal, through the operator socket, or in this process.

All three speak the same HTTP, so a command is written once.

Must not break: while a server answers on the operator socket nothing is done in this process, because the
server may hold what the work needs (locks, caches, a single-process store).
"""

import ipaddress
import os
import random
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from cynosure.cli import light as _  # noqa: F401 - before httpx
from cynosure.cli import options
from cynosure.cli.flags import Flags, Local, choose_server, read_secret
from cynosure.cli.output import tell
from cynosure.cli.waiting import tell_wait
from cynosure.client.api import ApiClient, realm_headers
from cynosure.client.catalog import CatalogApi
from cynosure.client.changes import Keyed
from cynosure.client.generic_tables import GenericTableApi
from cynosure.client.http import HttpClient
from cynosure.client.idempotency import Keys
from cynosure.client.management import Management
from cynosure.client.policies import PolicyApi
from cynosure.client.profiles import Profile, load_profiles, profiles_path
from cynosure.client.tls import ClientTls
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.client.unix_socket import is_answering, short_path
from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import BadInput, Misconfigured, NotAuthenticated
from cynosure.common.secrets import Secret

if TYPE_CHECKING:
    from cynosure.client.appends import AppendApi
    from cynosure.client.copying.copying import Copying, Note
    from cynosure.client.drops import CatalogDropApi, DropApi
    from cynosure.client.maintenance import MaintenanceApi
    from cynosure.client.shape import ShapeApi
    from cynosure.client.tasks import TaskApi
    from cynosure.server.settings import Settings

K = TypeVar("K", bound=Keyed)


class Server:
    """A server that answers, and whose it is."""

    def __init__(self, api: ApiClient, settings: "Settings | None" = None, *, key: str | None = None) -> None:
        """`key`: the Idempotency-Key of the change that is made there."""
        self._api = api
        self._key = key
        self.management = self._keyed(Management(api))
        self.settings = settings
        """Of the local server; `None` for one on the network, whose files are its own."""

    def catalog(self, name: str) -> CatalogApi:
        """One of its catalogs."""
        return self._keyed(CatalogApi(self._api, name))

    def generic_tables(self, catalog: str) -> GenericTableApi:
        """The generic tables of one of its catalogs."""
        return self._keyed(GenericTableApi(self._api, catalog))

    def appends(self, catalog: str) -> "AppendApi":
        """Appends to the tables of one of its catalogs."""
        from cynosure.client.appends import AppendApi

        return self._keyed(AppendApi(self._api, catalog))

    def copying(self, theirs: str, ours: str, note: "Note") -> "Copying":
        """A copy of what one of its catalogs has, in another."""
        from cynosure.client.copying.copying import Copying
        from cynosure.client.copying.ends import End

        return Copying(End(self._api, theirs), End(self._api, ours), self.policies(theirs), note)

    def policies(self, catalog: str) -> PolicyApi:
        """The policies of one of its catalogs."""
        return self._keyed(PolicyApi(self._api, catalog))

    def drops(self, catalog: str) -> "DropApi":
        """What was dropped in one of its catalogs, and cascades there."""
        from cynosure.client.drops import DropApi

        return self._keyed(DropApi(self._api, catalog))

    def catalog_drops(self) -> "CatalogDropApi":
        """Catalogs that are dropped with all they hold."""
        from cynosure.client.drops import CatalogDropApi

        return self._keyed(CatalogDropApi(self._api))

    def tasks(self) -> "TaskApi":
        """Its long work."""
        from cynosure.client.tasks import TaskApi

        return TaskApi(self._api)

    def maintenance(self, catalog: str) -> "MaintenanceApi":
        """Maintenance of the tables of one of its catalogs."""
        from cynosure.client.maintenance import MaintenanceApi

        return self._keyed(MaintenanceApi(self._api, catalog))

    def shape(self, catalog: str) -> "ShapeApi":
        """The shapes of the tables of one of its catalogs."""
        from cynosure.client.shape import ShapeApi

        return self._keyed(ShapeApi(self._api, catalog))

    def _keyed(self, api: K) -> K:
        return api if self._key is None else api.with_key(self._key)


@asynccontextmanager
async def open_transport(
    to: Flags, *, initialise: bool = False, key: str | None = None, patience_s: float | None = None
) -> AsyncIterator[Server]:
    """The server that these flags mean. `initialise`: make the store of a local one if it is not there.

    `key` is the Idempotency-Key of the one change that is made, and `patience_s` how long that may take.
    """
    profiles = load_profiles(profiles_path(os.environ))
    chosen = choose_server(to, os.environ, profiles)
    clock = SystemClock()
    rng = random.Random()  # noqa: S311 - jitter only
    realm = to.realm or os.environ.get("CYNOSURE_REALM")
    if isinstance(chosen, Local):
        source = options.make_source(to.config, {"server.data_dir": to.data, "persistence.url": to.store})
        settings = source.load()
        async with _open_local(settings, clock, rng, initialise=initialise) as (http, is_remote):
            keys = _make_keys(patience_s, is_remote=is_remote)
            yield Server(ApiClient(http, realm=realm, keys=keys), settings, key=key)
        return
    base = check_url(chosen.url, is_plain_allowed=to.plain_http or chosen.plain_http)
    realm = realm or chosen.realm
    credentials = find_credentials(to, os.environ, chosen)
    async with HttpClient(
        base, clock=clock, rng=rng, tls=tls_of(to, chosen, base), is_patient=False, on_wait=tell_wait
    ) as http:
        tokens = TokenSource(http, credentials, clock, headers=realm_headers(realm))
        keys = _make_keys(patience_s, is_remote=True)
        yield Server(ApiClient(http, tokens=tokens, realm=realm, keys=keys), key=key)


def _make_keys(patience_s: float | None, *, is_remote: bool) -> Keys:
    # Nothing comes between this process and itself: no answer is lost, so no key is needed.
    return Keys(
        is_automatic=is_remote,
        patience_s=patience_s,
        on_replay=lambda replay: tell("Answered before under this Idempotency-Key; this is that answer."),
        on_unsupported=lambda: tell(
            "The server does not say that it honours Idempotency-Keys: look before you run this again."
        ),
    )


@asynccontextmanager
async def _open_local(
    settings: "Settings", clock: Clock, rng: random.Random, *, initialise: bool
) -> AsyncIterator[tuple[HttpClient, bool]]:
    """The way there, and whether it leads to another process."""
    path = settings.server.operator_socket_path
    if is_answering(path):
        with short_path(path) as name:
            async with HttpClient(
                "http://operator", clock=clock, rng=rng, unix_socket=name, on_wait=tell_wait
            ) as http:
                yield http, True
        return
    import httpx

    from cynosure.server.wiring import open_operator_app

    async with open_operator_app(settings, clock, initialise=initialise) as app:
        transport = httpx.ASGITransport(app)
        async with HttpClient("http://operator", clock=clock, rng=rng, transport=transport) as http:
            yield http, False


def check_url(url: str, *, is_plain_allowed: bool, field: str = "--url") -> str:
    """The base of a server's addresses; what engines are given (`…/api/catalog`) is understood as well."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            "Not the URL of a server",
            field=field,
            fix="Write http://HOST:PORT or https://HOST:PORT.",
            url=url,
        )
    if parts.username is not None or parts.password is not None:
        raise BadInput(
            "A URL must not hold credentials", field=field, fix="Give --client-id and --client-secret-file."
        )
    if parts.scheme == "http" and not is_plain_allowed and not _is_loopback(parts.hostname):
        raise Misconfigured(
            "The secret would go to another machine without TLS",
            fix="Use https://, or say --plain-http if the network between is trusted.",
            url=url,
        )
    return url.rstrip("/").removesuffix("/api/catalog")


def find_credentials(to: Flags, environment: Mapping[str, str], profile: Profile) -> ClientCredentials:
    """A client id and its own secret: of flags, of the environment or of the profile, in this order."""
    given = read_secret(
        to.client_secret_file, to.client_secret_env, flag="--client-secret", prompt="Client secret"
    )
    from_environment = environment.get("CYNOSURE_CLIENT_SECRET")
    client_id = to.client_id or environment.get("CYNOSURE_CLIENT_ID") or profile.client_id
    secret = given or from_environment
    if not secret and client_id == profile.client_id:
        secret = profile.client_secret
    if not client_id:
        raise NotAuthenticated(
            "The server must know who asks, and no client id is given",
            fix="Give --client-id and --client-secret-file, or set CYNOSURE_CLIENT_ID and "
            "CYNOSURE_CLIENT_SECRET, or make a profile: cynosure profiles create NAME --url URL.",
            url=profile.url,
        )
    if not secret and sys.stdin.isatty():
        secret = read_secret("-", None, flag="--client-secret", prompt=f"Secret of {client_id}")
    if not secret:
        raise NotAuthenticated(
            "No secret is given for the client id",
            fix="Give --client-secret-file, or set CYNOSURE_CLIENT_SECRET.",
            client_id=client_id,
        )
    return ClientCredentials(client_id, Secret(secret))


def tls_of(to: Flags, profile: Profile, url: str) -> ClientTls | None:
    """The files of a TLS client towards this address; `None` where there is no TLS."""
    if urlsplit(url).scheme != "https":
        return None
    return ClientTls(
        ca=to.tls_ca or (Path(profile.tls_ca) if profile.tls_ca else None),
        certificate=Path(profile.tls_cert) if profile.tls_cert else None,
        key=Path(profile.tls_key) if profile.tls_key else None,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
