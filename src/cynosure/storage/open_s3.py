"""From the configuration of an S3 store to all it gives.

    keys of the catalog, or named ones       ──► token service ──► credentials for clients
                │                                                  (vending, in memory)
                │ without a role                                         │ of the role
                ▼                                                        ▼
    the server's own files, signatures       ◄── what all of these load their keys from

A maintainer must not break: where a role is named, the server itself has no more than it either, limited to
the allowed locations.
"""

from collections.abc import Callable

from msgspec import structs

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.common.keyring import Keyring
from cynosure.storage.access.ports import Scope, Signer, Subject
from cynosure.storage.access.s3.keys import AssumedRole, NoKeys, S3KeySource, S3Session, StaticKeys
from cynosure.storage.access.s3.named_keys import find_named
from cynosure.storage.access.s3.signer import S3Signer
from cynosure.storage.access.s3.vendor import S3Vendor, can_vend, client_config
from cynosure.storage.access.vending import Vending
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import Owner, S3Storage, allowed_locations, open_s3_keys
from cynosure.storage.opened import Storage
from cynosure.storage.settings import LEAST_LEFT_TO_SCANS, StorageSettings


def open_s3(
    config: S3Storage,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    clock: Clock,
) -> Storage:
    """The storage, without connecting."""
    keys = _find_keys(config, owner, keyring, settings)
    if isinstance(keys, NoKeys):
        return Storage(S3FileIO(config, keys, settings), client_config(config))
    own: S3KeySource = keys
    vending: Vending | None = None
    scan_vending: Vending | None = None
    if can_vend(config):
        vending = _open_vending(config, keys, settings, clock)
        short = structs.replace(
            settings,
            credential_lifetime=settings.scan_credential_lifetime,
            min_remaining_life=max(settings.min_remaining_life, LEAST_LEFT_TO_SCANS),
        )
        scan_vending = _open_vending(config, keys, short, clock)
        if config.sts.role_arn is not None:
            own = AssumedRole(
                vending, Scope(allowed_locations(config), is_writable=True), _server(owner), clock
            )
    signer: Signer = S3Signer(config, own, settings, clock, vending)
    return Storage(S3FileIO(config, own, settings), client_config(config), vending, signer, scan_vending)


def _open_vending(config: S3Storage, keys: S3KeySource, settings: StorageSettings, clock: Clock) -> Vending:
    return Vending(
        S3Vendor(config, keys, settings, clock),
        clock,
        kind="s3",
        min_remaining=settings.min_remaining_life,
        timeout_s=settings.operation_timeout.total_seconds(),
    )


def _find_keys(
    config: S3Storage, owner: Owner, keyring: Callable[[], Keyring], settings: StorageSettings
) -> S3KeySource:
    if config.sealed_keys is not None:
        keys = open_s3_keys(config.sealed_keys, keyring(), owner)
        return StaticKeys(S3Session(keys.access_key_id, keys.secret_access_key))
    try:
        named = find_named(config, owner, settings)
    except BadInput as error:
        # The settings may have changed since. What needs no files still works; whoever reads hears why not.
        return NoKeys(error.message, fix=error.fix)
    return NoKeys() if named is None else StaticKeys(S3Session(named.access_key_id, named.secret_access_key))


def _server(owner: Owner) -> Subject:
    # No principal has this id.
    return Subject(realm=owner[0], principal="server", principal_id=-1, catalog=owner[1], table="")
