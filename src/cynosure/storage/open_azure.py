"""From the configuration of a storage of Azure's to all it gives.

A maintainer must not break: the server's files and the key that signs for clients come from the same token,
so there is one place that renews it.
"""

from collections.abc import Callable

from cynosure.common.clock import Clock
from cynosure.common.keyring import Keyring
from cynosure.storage.access.azure.account import Account, client_config
from cynosure.storage.access.azure.tokens import AzureTokens
from cynosure.storage.access.azure.vendor import AzureVendor
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.tokens import Renewed, refuse_without_keys
from cynosure.storage.access.vending import Vending
from cynosure.storage.backends.azure import AzureFileIO
from cynosure.storage.config import AzureStorage, Owner, open_azure_keys
from cynosure.storage.opened import Storage
from cynosure.storage.settings import LEAST_LEFT_TO_SCANS, StorageSettings


def open_azure(
    config: AzureStorage,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    clock: Clock,
) -> Storage:
    """The storage, without connecting."""
    if config.sealed_keys is None:
        nothing = Renewed(refuse_without_keys, clock)
        return Storage(AzureFileIO(config, nothing, settings), client_config(config))
    keys = open_azure_keys(config.sealed_keys, keyring(), owner)
    account = Account.of(config)
    lifetime_ms = round(settings.credential_lifetime.total_seconds() * 1000)
    tokens = AzureTokens(account, keys, TokenService(settings), clock, lifetime_ms=lifetime_ms)

    def open_vending(lifetime_ms: int, min_remaining: float) -> Vending:
        return Vending(
            AzureVendor(
                account,
                tokens.signing_keys,
                clock,
                lifetime_ms=lifetime_ms,
                has_directories=config.hierarchical,
            ),
            clock,
            kind="azure",
            min_remaining=min_remaining,
            timeout_s=settings.operation_timeout.total_seconds(),
        )

    return Storage(
        AzureFileIO(config, tokens.tokens, settings),
        client_config(config),
        open_vending(lifetime_ms, settings.min_remaining_life),
        scan_vending=open_vending(
            round(settings.scan_credential_lifetime.total_seconds() * 1000),
            max(settings.min_remaining_life, LEAST_LEFT_TO_SCANS),
        ),
    )
