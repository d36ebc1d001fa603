"""Files as a client reaches them that was given credentials, to find out what those open.

A maintainer must not break: nothing but the vended credentials is used. The addresses are those that the
server itself speaks to, because it may not reach the ones that clients do.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Vended
from cynosure.storage.config import AzureStorage, GcsStorage, S3Storage, StorageConfig, allowed_locations
from cynosure.storage.fileio import FileIO
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from obstore.store import AzureCredential


def open_as_client(config: StorageConfig, vended: Vended, settings: StorageSettings, clock: Clock) -> FileIO:
    """The files of a storage with the first of these credentials, wherever the catalog may have some."""
    match config:
        case S3Storage():
            return _open_s3(config, vended, settings)
        case GcsStorage():
            return _open_gcs(config, vended, settings, clock)
        case AzureStorage():
            return _open_azure(config, vended, settings)
    raise BadInput(
        "No credentials are given for local files", field="storageType", fix="Reach the files themselves."
    )


# Drivers are imported where they are used, as in `open_storage.py`.


def _open_s3(config: S3Storage, vended: Vended, settings: StorageSettings) -> FileIO:
    from cynosure.storage.access.s3.keys import S3Session, StaticKeys  # noqa: PLC0415
    from cynosure.storage.backends.s3 import S3FileIO  # noqa: PLC0415

    session = S3Session.from_properties(vended.credentials[0].config)
    return S3FileIO(config, StaticKeys(session), settings)


def _open_gcs(config: GcsStorage, vended: Vended, settings: StorageSettings, clock: Clock) -> FileIO:
    from cynosure.storage.access.tokens import Renewed, Token  # noqa: PLC0415
    from cynosure.storage.backends.gcs import GcsFileIO  # noqa: PLC0415

    given = Secret(vended.credentials[0].config["gcs.oauth2.token"])

    async def provide() -> Token:
        return Token(given, vended.issued_ms, vended.expires_ms)

    return GcsFileIO(config, Renewed(provide, clock), settings)


def _open_azure(config: AzureStorage, vended: Vended, settings: StorageSettings) -> FileIO:
    from cynosure.storage.access.azure.account import Account  # noqa: PLC0415
    from cynosure.storage.backends.azure import open_container_with  # noqa: PLC0415
    from cynosure.storage.object_files import ObjectFiles, Store  # noqa: PLC0415

    account = Account.of(config)
    signature = vended.credentials[0].config["adls.sas-token"]
    expires_at = datetime.fromtimestamp(vended.expires_ms / 1000, UTC)

    async def provide() -> "AzureCredential":
        return {"sas_token": signature, "expires_at": expires_at}

    async def be_ready() -> None:
        """The signature is there."""

    store = Store(
        open_bucket=lambda location, wanted: open_container_with(
            location.authority.partition("@")[0], account, provide, wanted
        ),
        authenticate=be_ready,
        bucket_word="container",
    )
    return ObjectFiles(store, allowed_locations(config), settings)
