"""From a configuration with a sealed key to files and tokens, with Google's services recorded."""

import asyncio

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.keyring import Keyring
from cynosure.storage.access.ports import Scope
from cynosure.storage.config import GcsStorage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storages
from cynosure.storage.settings import StorageSettings
from cynosure.testing.vendor_kit import ALICE

from .access.gcs.google import answer, make_keys
from .recorded_service import Heard, RecordedService, Reply

pytestmark = pytest.mark.anyio

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")
PLACE = Location.parse("gs://bkt/lake")


def answer_all(heard: Heard) -> Reply:
    """Tokens, and a storage that takes everything."""
    if heard.path.startswith("/bkt"):
        return Reply(b"", headers={"etag": '"e"'})
    return answer(heard)


def open_storages() -> Storages:
    return Storages(lambda: KEYRING, StorageSettings(), SystemClock())


async def test_files_and_tokens_of_clients_come_from_one_token():
    async with RecordedService(answer_all) as google:
        storages = open_storages()
        config = GcsStorage(
            allowed_locations=(PLACE.text,), endpoint=google.url, token_endpoint=f"{google.url}/"
        )
        storage = storages.get(storages.seal(config, make_keys(), OWNER), OWNER)
        await storage.files.write(PLACE.child("file"), b"x")
        assert storage.vending is not None
        scope = Scope((PLACE,), is_writable=True)
        found = await asyncio.gather(*(storage.vending.vend(scope, ALICE) for _ in range(64)))

    assert [heard.path for heard in google.heard] == ["/token", "/bkt/lake%2Ffile", "/v1/token"]
    assert google.heard[1].headers["authorization"] == "Bearer own"
    assert {each.credentials[0].config["gcs.oauth2.token"] for each in found} == {"downscoped"}
    assert storage.client_config == {"gcs.service.host": google.url}


async def test_without_a_key_it_is_opened_and_reaches_nothing():
    async with RecordedService(answer_all) as google:
        config = GcsStorage(allowed_locations=(PLACE.text,), endpoint=google.url, token_endpoint=google.url)
        storage = open_storages().get(replace(config), OWNER)
        with pytest.raises(StorageRefused, match="no keys"):
            await storage.files.write(PLACE.child("file"), b"x")

    assert storage.vending is None
    assert google.heard == []
