"""Choose the FileIO of a storage configuration, and keep it for as long as the configuration is in use.

A maintainer must not break: a changed configuration is another key, so changed credentials or allowed
locations take effect with the next operation.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from cynosure.common.keyring import Keyring
from cynosure.storage.config import (
    FileStorage,
    Owner,
    S3Keys,
    S3Storage,
    StorageConfig,
    allowed_locations,
    check_storage,
    open_s3_keys,
    seal_s3_keys,
)
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings

_MOST_KEPT: Final = 1_024


def open_fileio(
    config: StorageConfig,
    owner: Owner,
    keyring: Callable[[], Keyring],
    settings: StorageSettings,
    *,
    file_roots: Sequence[Location],
) -> FileIO:
    """The files of one configuration, without connecting. `BadInput` when it cannot work."""
    check_storage(config, file_roots=file_roots)
    # Drivers are imported here, so that a server pays only for the storages its catalogs use.
    if isinstance(config, FileStorage):
        from cynosure.storage.backends.local import LocalFileIO  # noqa: PLC0415

        return LocalFileIO(allowed_locations(config))
    from cynosure.storage.backends.s3 import S3FileIO  # noqa: PLC0415

    keys = None if config.sealed_keys is None else open_s3_keys(config.sealed_keys, keyring(), owner)
    return S3FileIO(config, keys, settings)


class FileIOs:
    """One FileIO, and so one pool of connections, per configuration and owner."""

    def __init__(
        self,
        keyring: Callable[[], Keyring],
        settings: StorageSettings,
        *,
        file_roots: Sequence[Location] = (),
    ) -> None:
        self._keyring = keyring
        """Asked only where keys are sealed or opened: looking at catalogs must not make a key file."""
        self._settings = settings
        self._file_roots = tuple(file_roots)
        self._kept: OrderedDict[tuple[StorageConfig, tuple[str, ...]], FileIO] = OrderedDict()

    def get(self, config: StorageConfig, owner: Owner) -> FileIO:
        """The FileIO of a configuration, made on first use. Never waits."""
        key = (config, tuple(owner))
        if (fileio := self._kept.get(key)) is None:
            fileio = open_fileio(config, owner, self._keyring, self._settings, file_roots=self._file_roots)
            self._kept[key] = fileio
            # Whoever still uses a dropped one goes on with it; its connections end with its last user.
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return fileio

    def seal(self, config: StorageConfig, keys: S3Keys | None, owner: Owner) -> StorageConfig:
        """A configuration as it is stored, with these keys, if any, sealed for its owner.

        `BadInput` when it could not be opened.
        """
        if keys is not None and isinstance(config, S3Storage):
            config = structs.replace(config, sealed_keys=seal_s3_keys(keys, self._keyring(), owner))
        check_storage(config, file_roots=self._file_roots)
        return config

    def close(self) -> None:
        """Forget all of them, and with them their keys and idle connections."""
        self._kept.clear()
