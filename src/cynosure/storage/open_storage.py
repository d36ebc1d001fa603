"""From a storage configuration to all it gives: its files, and access to them for clients.

A maintainer must not break: a changed configuration is another key, so changed credentials or allowed
locations take effect with the next operation; and this is the one place where keys are opened.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import structs

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.common.keyring import Keyring
from cynosure.storage.access.ports import Signed, StoreRequest, Vended
from cynosure.storage.access.s3.named_keys import find_named
from cynosure.storage.check_config import check_bucket_hosts, check_storage
from cynosure.storage.config import (
    KEYS_OF,
    AzureStorage,
    FileStorage,
    GcsStorage,
    Owner,
    S3Storage,
    StorageConfig,
    StorageKeys,
    allowed_locations,
    rewrap_keys,
    seal_keys,
)
from cynosure.storage.decorators import decorate
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location
from cynosure.storage.opened import Storage
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from cynosure.storage.access.s3.signed_files import SignedFiles

__all__ = ["Storage", "Storages", "open_storage"]

_MOST_KEPT: Final = 1_024

Sign = Callable[[StoreRequest], Awaitable[Signed]]


def open_storage(
    config: StorageConfig,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    clock: Clock,
    *,
    file_roots: Sequence[Location],
) -> Storage:
    """The storage of one configuration, without connecting. `BadInput` when it cannot work."""
    check_storage(config, file_roots=file_roots)
    opened = _open(config, owner, keyring, settings, clock)
    kind = config.__struct_config__.tag
    return structs.replace(opened, files=decorate(opened.files, str(kind).lower(), settings, clock))


def _open(
    config: StorageConfig,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    clock: Clock,
) -> Storage:
    # Drivers are imported here, so that a server pays only for the storages its catalogs use.
    if isinstance(config, FileStorage):
        from cynosure.storage.backends.local import LocalFileIO  # noqa: PLC0415

        return Storage(LocalFileIO(allowed_locations(config)))
    if isinstance(config, GcsStorage):
        from cynosure.storage.open_gcs import open_gcs  # noqa: PLC0415

        return open_gcs(config, owner, keyring, settings, clock)
    if isinstance(config, AzureStorage):
        from cynosure.storage.open_azure import open_azure  # noqa: PLC0415

        return open_azure(config, owner, keyring, settings, clock)
    from cynosure.storage.open_s3 import open_s3  # noqa: PLC0415

    return open_s3(config, owner, keyring, settings, clock)


class Storages:
    """One storage, and so one pool of connections, per configuration and owner."""

    def __init__(
        self,
        keyring: Callable[[], Keyring],
        settings: StorageSettings,
        clock: Clock,
        *,
        file_roots: Sequence[Location] = (),
    ) -> None:
        self._keyring = keyring
        """Asked only where keys are sealed or opened: looking at catalogs must not make a key file."""
        self._settings = settings
        self._clock = clock
        self._file_roots = tuple(file_roots)
        self._kept: OrderedDict[tuple[StorageConfig, tuple[str, ...]], Storage] = OrderedDict()

    def get(self, config: StorageConfig, owner: Owner) -> Storage:
        """The storage of a configuration, opened on first use. Never waits."""
        key = (config, tuple(owner))
        if (storage := self._kept.get(key)) is None:
            storage = open_storage(
                config, owner, self._keyring, self._settings, self._clock, file_roots=self._file_roots
            )
            self._kept[key] = storage
            # Whoever still uses a dropped one goes on with it; its connections end with its last user.
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return storage

    def open_as_client(self, config: StorageConfig, vended: Vended) -> FileIO:
        """The files as a client reaches them that was given these credentials, for one location."""
        from cynosure.storage.as_client import open_as_client  # noqa: PLC0415

        return open_as_client(config, vended, self._settings, self._clock)

    def open_signed(self, config: S3Storage, sign: Sign) -> "SignedFiles":
        """The files as a client reaches them that has every request signed by `sign`."""
        from cynosure.storage.access.s3.signed_files import SignedFiles  # noqa: PLC0415

        return SignedFiles(config, self._settings, sign)

    def seal(self, config: StorageConfig, keys: StorageKeys | None, owner: Owner) -> StorageConfig:
        """A configuration as it is stored, with these keys, if any, sealed for its owner.

        `BadInput` when it could not be opened.
        """
        if keys is not None and not isinstance(config, FileStorage):
            if type(keys) is not KEYS_OF[type(config)]:
                raise BadInput(
                    "These keys are for another kind of storage",
                    field="storageConfigInfo",
                    fix="Give the keys that belong to the storage type.",
                )
            config = structs.replace(config, sealed_keys=seal_keys(keys, self._keyring(), owner))
        check_storage(config, file_roots=self._file_roots)
        if isinstance(config, S3Storage):
            check_bucket_hosts(config)
            find_named(config, owner, self._settings)
        return config

    def rewrap(self, config: StorageConfig, owner: Owner) -> StorageConfig:
        """A configuration with its keys, if it has any, under the primary master key."""
        return config if isinstance(config, FileStorage) else rewrap_keys(config, self._keyring(), owner)

    def close(self) -> None:
        """Forget all of them, and with them their keys and idle connections."""
        self._kept.clear()
