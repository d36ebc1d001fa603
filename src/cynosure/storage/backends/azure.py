"""Files in Azure Blob Storage and Data Lake Storage.

A maintainer must not break: obstore takes every `AZURE_…` environment variable that it knows as a default,
and would ask the machine's own identity or Azure's command line for a token. So every option that a variable
could set is set here, and tokens come from a provider. The one option without a neutral value is in
`_UNWELCOME`: where the environment sets it, no container is opened. A test compares both with the options
that obstore knows.
"""

import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from obstore.store import AzureStore

from cynosure.common.errors import Misconfigured
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.tokens import TOKEN_LEFT_MS
from cynosure.storage.access.tokens import Renewed, Token
from cynosure.storage.config import AzureStorage, allowed_locations
from cynosure.storage.location import Location
from cynosure.storage.object_files import ObjectFiles, Store, make_client_options, make_retry_config
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureCredential

_UNWELCOME: Final = ("AZURE_ENCRYPTION_KEY",)
_NOWHERE: Final = "http://127.0.0.1:9"


class AzureFileIO(ObjectFiles):
    """Blobs below the allowed locations, in any number of containers of one account, as one application."""

    def __init__(self, config: AzureStorage, tokens: Renewed[Token], settings: StorageSettings) -> None:
        store = Store(
            open_bucket=self._open_container, authenticate=self._authenticate, bucket_word="container"
        )
        super().__init__(store, allowed_locations(config), settings)
        self._account = Account.of(config)
        self._tokens = tokens

    async def _authenticate(self) -> None:
        await self._tokens.load(min_left_ms=TOKEN_LEFT_MS)

    def _open_container(self, location: Location, settings: StorageSettings) -> AzureStore:
        container = location.authority.partition("@")[0]
        return open_container(container, self._account, self._tokens, settings)


def open_container(
    container: str, account: Account, tokens: Renewed[Token], settings: StorageSettings
) -> AzureStore:
    """A client for one container. Does not connect. `tokens` has been loaded by whoever uses it."""

    async def provide() -> "AzureCredential":
        token = await tokens.load(min_left_ms=TOKEN_LEFT_MS)
        expires_at = datetime.fromtimestamp(token.expires_ms / 1000, UTC)
        return {"token": token.value.reveal(), "expires_at": expires_at}

    return open_container_with(container, account, provide, settings)


def open_container_with(
    container: str,
    account: Account,
    provide: "Callable[[], AzureCredential | Coroutine[Any, Any, AzureCredential]]",
    settings: StorageSettings,
) -> AzureStore:
    """As `open_container`, with credentials of any kind."""
    if present := [name for name in _UNWELCOME if name in os.environ]:
        raise Misconfigured(
            "The environment sets options of object stores that cannot be overridden",
            variables=", ".join(present),
            fix="Unset them: storages are configured per catalog only.",
        )
    options: AzureConfig = {
        "account_name": account.name,
        "endpoint": account.url,
        "use_emulator": False,
        "use_fabric_endpoint": False,
        "skip_signature": False,
        "disable_tagging": True,
        # Never used, because there is a credential provider; named so that no variable can change that.
        "credential_type": "auto",
        "account_key": "",
        "sas_key": "",
        "token": "",
        "client_id": "",
        "client_secret": "",
        "tenant_id": "",
        "authority_host": _NOWHERE,
        "msi_endpoint": _NOWHERE,
        "object_id": "",
        "msi_resource_id": "",
        "federated_token_file": "",
        "use_azure_cli": False,
        "fabric_token_service_url": "",
        "fabric_workload_host": "",
        "fabric_session_token": "",
        "fabric_cluster_identifier": "",
    }
    return AzureStore(
        container,
        config=options,
        client_options=make_client_options(settings, account.url),
        retry_config=make_retry_config(settings),
        credential_provider=provide,
    )
