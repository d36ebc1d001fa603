"""Files in Google Cloud Storage.

A maintainer must not break: obstore takes every `GOOGLE_…` environment variable that it knows as a default,
and the file that Google's tools leave in a home directory. So every option that a variable could set is set
here, and tokens come from a provider. The options without a neutral value are in `_UNWELCOME`: where the
environment sets one of those, no bucket is opened. A test compares both with the options that obstore knows.
"""

import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from obstore.store import GCSStore

from cynosure.common.errors import Misconfigured
from cynosure.storage.access.gcs.tokens import TOKEN_LEFT_MS
from cynosure.storage.access.tokens import Renewed, Token
from cynosure.storage.config import GcsStorage, allowed_locations
from cynosure.storage.location import Location
from cynosure.storage.object_files import ObjectFiles, Store, make_client_options, make_retry_config
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from obstore.store import GCSConfig, GCSCredential

_HOST: Final = "https://storage.googleapis.com"
_UNWELCOME: Final = (
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
)


class GcsFileIO(ObjectFiles):
    """Objects below the allowed locations, in any number of buckets, as one service account."""

    def __init__(
        self,
        config: GcsStorage,
        tokens: Renewed[Token],
        settings: StorageSettings,
        *,
        repeats_changes: bool = True,
    ) -> None:
        store = Store(
            open_bucket=self._open_bucket,
            authenticate=self._authenticate,
            repeats_changes=repeats_changes,
        )
        super().__init__(store, allowed_locations(config), settings)
        self._config = config
        self._tokens = tokens

    async def _authenticate(self) -> None:
        await self._tokens.load(min_left_ms=TOKEN_LEFT_MS)

    def _open_bucket(self, location: Location, settings: StorageSettings) -> GCSStore:
        return open_bucket(location.authority, self._config, self._tokens, settings)


def open_bucket(
    bucket: str, config: GcsStorage, tokens: Renewed[Token], settings: StorageSettings
) -> GCSStore:
    """A client for one bucket. Does not connect. `tokens` has been loaded by whoever uses it."""

    async def provide() -> "GCSCredential":
        token = await tokens.load(min_left_ms=TOKEN_LEFT_MS)
        expires_at = datetime.fromtimestamp(token.expires_ms / 1000, UTC)
        return {"token": token.value.reveal(), "expires_at": expires_at}

    return open_bucket_with(bucket, config, provide, settings)


def open_bucket_with(
    bucket: str,
    config: GcsStorage,
    provide: "Callable[[], GCSCredential | Coroutine[Any, Any, GCSCredential]]",
    settings: StorageSettings,
) -> GCSStore:
    """As `open_bucket`, with credentials of any kind."""
    if present := [name for name in _UNWELCOME if name in os.environ]:
        raise Misconfigured(
            "The environment sets options of object stores that cannot be overridden",
            variables=", ".join(present),
            fix="Unset them: storages are configured per catalog only.",
        )

    endpoint = (config.endpoint or _HOST).removesuffix("/")
    options: GCSConfig = {
        "base_url": endpoint,
        "skip_signature": False,
        # Never used, because there is a credential provider; named so that no variable can change that.
        "bearer_token": "",
        "application_credentials": "",
    }
    return GCSStore(
        bucket,
        config=options,
        client_options=make_client_options(settings, endpoint),
        retry_config=make_retry_config(settings),
        credential_provider=provide,
    )
