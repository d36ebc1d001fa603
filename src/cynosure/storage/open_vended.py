"""Files as somebody reaches them whom a catalog gave properties of a client, renewed before they end.

A delegation service works with this, and so do Spark's executors: neither has a storage configuration or keys
of its own. Unlike `as_client.py`, which asks what credentials open, this is for long work.

A maintainer must not break: nothing but these properties is used, never the environment; nothing outside of
the places is reached, whatever the credentials would open; and a change is sent once when it is asked for,
because whoever asks has looked at a lease right before.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.tokens import Renewed, Token
from cynosure.storage.config import AzureStorage, GcsStorage, S3Storage
from cynosure.storage.decorators import decorate
from cynosure.storage.errors import StorageRefused
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location, is_allowed
from cynosure.storage.settings import StorageSettings
from cynosure.storage.vended_expiry import find_expiry_ms

if TYPE_CHECKING:
    from obstore.store import AzureCredential

    from cynosure.storage.access.azure.account import Account
    from cynosure.storage.access.s3.keys import S3Session

_SPARE_MS: Final = 60_000
"""Credentials with less left are renewed; of those that live shortly, when half of their life is over."""
_FOR_EVER_MS: Final = 10 * 365 * 86_400_000

Renew = Callable[[], Awaitable[Mapping[str, str]]]
"""Asks for new properties."""


class _Given(Struct, frozen=True):
    """Properties, and how long they are good."""

    properties: Mapping[str, str]
    issued_ms: int
    expires_ms: int

    def __repr__(self) -> str:
        return "_Given(…)"


class _Properties:
    """The newest properties."""

    def __init__(self, first: Mapping[str, str], renew: Renew | None, clock: Clock) -> None:
        self._first: Mapping[str, str] | None = first
        self._renew = renew
        self._clock = clock
        self._renewed = Renewed(self._fetch, clock)

    async def load(self) -> _Given:
        """Good for a while yet, as far as anybody can renew them."""
        kept = self._renewed.get()
        if kept is not None and self._renew is None:
            return kept
        life_ms = _SPARE_MS * 2 if kept is None else kept.expires_ms - kept.issued_ms
        return await self._renewed.load(min_left_ms=min(_SPARE_MS, life_ms // 2))

    async def _fetch(self) -> _Given:
        now_ms = self._clock.now_us() // 1000
        given, self._first = self._first, None
        # What came first may have been on its way, or in a queue, for long.
        is_old = given is not None and 0 < find_expiry_ms(given) < now_ms + _SPARE_MS
        if self._renew is not None and (given is None or is_old):
            given = await self._renew()
            now_ms = self._clock.now_us() // 1000
        if given is None:
            raise StorageRefused("The credentials have ended", fix="Ask the catalog for new ones.")
        return _Given(given, now_ms, find_expiry_ms(given) or now_ms + _FOR_EVER_MS)


def open_vended(
    properties: Mapping[str, str],
    places: Sequence[Location],
    settings: StorageSettings,
    clock: Clock,
    renew: Renew | None = None,
    *,
    file_roots: Sequence[Location] = (),
) -> FileIO:
    """The files below `places`, with the properties that a catalog gave for them.

    `renew` is asked before they end. Local files have no credentials: they are reached below `file_roots`
    only. `StorageRefused` for a place elsewhere and for properties without credentials.
    """
    schemes = {place.scheme for place in places}
    if len(schemes) != 1:
        raise StorageRefused(
            "Places of one table are in different kinds of storages",
            places=", ".join(place.text for place in places),
        )
    [scheme] = schemes
    if scheme == "file":
        return decorate(_open_local(places, file_roots), "file", settings, clock)
    kept = _Properties(properties, renew, clock)
    match scheme:
        case "s3":
            files, kind = _open_s3(kept, properties, places, settings), "s3"
        case "gs":
            files, kind = _open_gcs(kept, properties, places, settings, clock), "gcs"
        case "az":
            files, kind = _open_azure(kept, properties, places, settings), "azure"
    return decorate(files, kind, settings, clock)


# Drivers are imported where they are used, as in `open_storage.py`.


def _open_local(places: Sequence[Location], file_roots: Sequence[Location]) -> FileIO:
    from cynosure.storage.backends.local import LocalFileIO  # noqa: PLC0415
    from cynosure.storage.decorators.confined import confine  # noqa: PLC0415

    for place in places:
        if not is_allowed(place, file_roots):
            raise StorageRefused(
                "Local files are outside of what may be touched here",
                location=place.text,
                fix="Name the directory in delegation.service.file_locations.",
            )
    # A place whose directory is gone is still a place; and it may be a link, but nothing below it.
    return confine(LocalFileIO(file_roots), places)


def _open_s3(
    kept: _Properties, first: Mapping[str, str], places: Sequence[Location], settings: StorageSettings
) -> FileIO:
    from cynosure.storage.access.s3.keys import S3Session  # noqa: PLC0415
    from cynosure.storage.backends.s3 import S3FileIO  # noqa: PLC0415

    class Keys:
        async def load(self) -> "S3Session":
            given = await kept.load()
            require(given.properties, "s3.access-key-id", "s3.secret-access-key")
            return S3Session.from_properties(given.properties)

    return S3FileIO(s3_config_of(first, places), Keys(), settings, repeats_changes=False)


def s3_config_of(properties: Mapping[str, str], places: Sequence[Location]) -> S3Storage:
    """Where a client's properties say that S3 is."""
    return S3Storage(
        allowed_locations=_texts(places),
        region=properties.get("client.region") or properties.get("s3.region") or "us-east-1",
        endpoint=properties.get("s3.endpoint"),
        path_style_access=properties.get("s3.path-style-access", "").lower() == "true",
    )


def _open_gcs(
    kept: _Properties,
    first: Mapping[str, str],
    places: Sequence[Location],
    settings: StorageSettings,
    clock: Clock,
) -> FileIO:
    from cynosure.storage.backends.gcs import GcsFileIO  # noqa: PLC0415

    async def provide() -> Token:
        given = await kept.load()
        [token] = require(given.properties, "gcs.oauth2.token")
        return Token(Secret(token), given.issued_ms, given.expires_ms)

    return GcsFileIO(gcs_config_of(first, places), Renewed(provide, clock), settings, repeats_changes=False)


def gcs_config_of(properties: Mapping[str, str], places: Sequence[Location]) -> GcsStorage:
    """Where a client's properties say that Google's storage is."""
    return GcsStorage(allowed_locations=_texts(places), endpoint=properties.get("gcs.service.host"))


def _open_azure(
    kept: _Properties, first: Mapping[str, str], places: Sequence[Location], settings: StorageSettings
) -> FileIO:
    from cynosure.storage.backends.azure import open_container_with  # noqa: PLC0415
    from cynosure.storage.object_files import ObjectFiles, Store  # noqa: PLC0415

    account = account_of(first, places)
    latest: list[_Given] = []

    async def authenticate() -> None:
        given = await kept.load()
        require(given.properties, "adls.sas-token")
        latest[:] = [given]

    async def provide() -> "AzureCredential":
        given = latest[0] if latest else await kept.load()
        expires_at = datetime.fromtimestamp(given.expires_ms / 1000, UTC)
        return {"sas_token": given.properties["adls.sas-token"], "expires_at": expires_at}

    store = Store(
        open_bucket=lambda location, wanted: open_container_with(
            location.authority.partition("@")[0], account, provide, wanted
        ),
        authenticate=authenticate,
        bucket_word="container",
        repeats_changes=False,
    )
    return ObjectFiles(store, places, settings)


def account_of(properties: Mapping[str, str], places: Sequence[Location]) -> "Account":
    """Where a client's properties say that the account of Azure is."""
    from cynosure.storage.access.azure.account import Account  # noqa: PLC0415

    authority = properties.get("adls.blob-storage-authority")
    endpoint = authority and f"{properties.get('adls.blob-storage-scheme', 'https')}://{authority}"
    return Account.of(AzureStorage(allowed_locations=_texts(places), tenant_id="", endpoint=endpoint))


def _texts(places: Sequence[Location]) -> tuple[str, ...]:
    return tuple(place.text for place in places)


def require(properties: Mapping[str, str], *names: str) -> list[str]:
    """Properties that must be there."""
    missing = [name for name in names if not properties.get(name)]
    if missing:
        raise StorageRefused(
            "The catalog gave no credentials for these files",
            missing=", ".join(missing),
            fix="Let the catalog's storage give credentials to clients (a role, or a token service).",
        )
    return [properties[name] for name in names]
