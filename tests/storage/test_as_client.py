"""Files reached with vended credentials and nothing else."""

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.vendor import AzureVendor
from cynosure.storage.access.ports import Credential, Scope, Vended
from cynosure.storage.as_client import open_as_client
from cynosure.storage.config import FileStorage, GcsStorage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.fileio_kit import collect
from cynosure.testing.vendor_kit import ALICE

from .azure_corner import AzureCorner
from .recorded_service import RecordedService, Reply

pytestmark = pytest.mark.anyio


async def vend(azure: AzureCorner, *, is_writable: bool) -> Vended:
    vendor = AzureVendor(
        Account.of(azure.config),
        azure.open_tokens().signing_keys,
        SystemClock(),
        lifetime_ms=3_600_000,
        has_directories=False,
    )
    return await vendor.mint(Scope((azure.locate(azure.container),), is_writable=is_writable), ALICE)


async def test_a_signature_of_azure_opens_its_container_to_read_or_to_write(azure: AzureCorner) -> None:
    file, new = azure.base.child("file"), azure.base.child("new")
    await azure.open().write(file, b"x")
    reader, writer = [
        open_as_client(azure.config, await vend(azure, is_writable=each), azure.settings, SystemClock())
        for each in (False, True)
    ]

    assert await reader.read(file) == b"x"
    assert [each.location for each in await collect(reader, azure.base)] == [file]
    with pytest.raises(StorageRefused):
        await reader.write(new, b"x")
    with pytest.raises(StorageRefused):
        await reader.delete(file)
    await writer.write(new, b"x")
    await writer.delete(new)
    assert not await writer.exists(new)


async def test_a_token_of_google_is_what_is_sent() -> None:
    """Asserted, not exercised: there is no storage of Google's here."""
    place = Location.parse("gs://bkt/lake")
    credential = Credential(
        place.text, {"gcs.oauth2.token": "downscoped", "gcs.oauth2.token-expires-at": "0"}
    )
    now_ms = SystemClock().now_us() // 1000

    async with RecordedService(lambda _: Reply(b"", headers={"etag": '"e"'})) as google:
        config = GcsStorage(allowed_locations=(place.text,), endpoint=google.url)
        vended = Vended((credential,), now_ms, now_ms + 3_600_000)
        client = open_as_client(config, vended, StorageSettings(), SystemClock())
        await client.write(place.child("file"), b"x")

    assert [each.headers["authorization"] for each in google.heard] == ["Bearer downscoped"]


def test_there_are_no_credentials_for_local_files() -> None:
    with pytest.raises(BadInput):
        open_as_client(
            FileStorage(allowed_locations=("/tmp",)), Vended((), 0, 0), StorageSettings(), SystemClock()
        )
