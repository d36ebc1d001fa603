"""From a configuration with sealed keys to files and signatures, on Azurite."""

import asyncio

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope
from cynosure.storage.config import S3Keys
from cynosure.storage.errors import StorageRefused
from cynosure.storage.open_storage import Storages
from cynosure.testing.vendor_kit import ALICE

from .azure_corner import AzureCorner

pytestmark = pytest.mark.anyio

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")


def open_storages(azure: AzureCorner) -> Storages:
    return Storages(lambda: KEYRING, azure.settings, SystemClock())


async def test_files_and_signatures_come_from_one_token(azure: AzureCorner):
    storages = open_storages(azure)
    place = azure.locate(azure.container)
    config = storages.seal(replace(azure.config, allowed_locations=(place.text,)), azure.keys, OWNER)

    storage = storages.get(config, OWNER)
    await storage.files.write(place.child("file"), b"x")
    assert storage.vending is not None
    vended = await storage.vending.vend(Scope((place,), is_writable=False), ALICE)

    query = vended.credentials[0].config["adls.sas-token"]
    assert await azure.ask("GET", f"/{azure.container}/file?{query}") == 200
    assert storage.signer is None
    assert storage.client_config["adls.account-name"] == azure.account
    assert len(azure.login.heard) == 1


async def test_who_renews_gets_signatures_of_a_shorter_life(azure: AzureCorner):
    storages = open_storages(azure)
    place = azure.locate(azure.container)
    config = storages.seal(replace(azure.config, allowed_locations=(place.text,)), azure.keys, OWNER)
    storage = storages.get(config, OWNER)
    for vending, lifetime in [
        (storage.vending, azure.settings.credential_lifetime),
        (storage.scan_vending, azure.settings.scan_credential_lifetime),
    ]:
        assert vending is not None
        vended = await vending.vend(Scope((place,), is_writable=False), ALICE)
        life_s = (vended.expires_ms - vended.issued_ms) / 1000
        assert lifetime.total_seconds() - 2 < life_s <= lifetime.total_seconds()


async def test_sixty_four_who_ask_at_once_cost_one_token_and_one_key(azure: AzureCorner):
    storages = open_storages(azure)
    place = azure.locate(azure.container)
    config = storages.seal(replace(azure.config, allowed_locations=(place.text,)), azure.keys, OWNER)
    vending = storages.get(config, OWNER).vending
    assert vending is not None

    scope = Scope((place,), is_writable=True)
    found = await asyncio.gather(*(vending.vend(scope, ALICE) for _ in range(64)))

    assert len({id(each) for each in found}) == 1
    assert len(azure.login.heard) == 1


async def test_without_keys_it_is_opened_and_reaches_nothing(azure: AzureCorner):
    storage = open_storages(azure).get(azure.config, OWNER)

    assert storage.vending is None
    with pytest.raises(StorageRefused, match="no keys"):
        await storage.files.read(azure.base.child("file"))
    assert azure.login.heard == []


async def test_keys_of_another_cloud_or_of_another_catalog_do_not_fit(azure: AzureCorner):
    storages = open_storages(azure)

    with pytest.raises(BadInput, match="another kind"):
        storages.seal(azure.config, S3Keys("a", Secret("b")), OWNER)
    with pytest.raises(CorruptObject):
        storages.get(storages.seal(azure.config, azure.keys, OWNER), ("default", "2"))
