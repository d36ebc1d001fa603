"""From the configuration of a storage of Google's to all it gives.

A maintainer must not break: the server's files and the tokens of clients are made from the same token, so
there is one place that renews it.
"""

from collections.abc import Callable

from cynosure.common.clock import Clock
from cynosure.common.keyring import Keyring
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.gcs.tokens import GcsTokens
from cynosure.storage.access.gcs.vendor import GcsVendor, client_config
from cynosure.storage.access.tokens import Renewed, refuse_without_keys
from cynosure.storage.access.vending import Vending
from cynosure.storage.backends.gcs import GcsFileIO
from cynosure.storage.config import GcsStorage, Owner, open_gcs_keys
from cynosure.storage.opened import Storage
from cynosure.storage.settings import StorageSettings


def open_gcs(
    config: GcsStorage,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    clock: Clock,
) -> Storage:
    """The storage, without connecting."""
    if config.sealed_keys is None:
        nothing = Renewed(refuse_without_keys, clock)
        return Storage(GcsFileIO(config, nothing, settings), client_config(config))
    keys = open_gcs_keys(config.sealed_keys, keyring(), owner)
    tokens = GcsTokens(config, keys, TokenService(settings), clock)
    vending = Vending(
        GcsVendor(tokens),
        clock,
        kind="gcs",
        min_remaining=settings.min_remaining_life,
        timeout_s=settings.operation_timeout.total_seconds(),
    )
    return Storage(GcsFileIO(config, tokens.tokens, settings), client_config(config), vending)
