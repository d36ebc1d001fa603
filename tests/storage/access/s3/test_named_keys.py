"""Keys of an operator serve only what the operator meant."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, Misconfigured
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.common.settings import read_file, read_settings
from cynosure.server.settings import Settings, check_settings
from cynosure.storage.access.s3.named_keys import find_named
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storages
from cynosure.storage.settings import StorageCredentials, StorageSettings
from cynosure.testing.s3_servers import S3Server

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")
LAKE = StorageCredentials(
    access_key_id="KEY",
    secret_access_key=Secret("secret"),
    locations=("s3://bkt/team-a", "s3://more"),
    endpoints=("http://in:1", "http://out:2/"),
    realms=("default", "second"),
)
SETTINGS = StorageSettings(credentials={"lake": LAKE})
CONFIG = S3Storage(
    allowed_locations=("s3://bkt/team-a/x", "s3://more"),
    storage_name="lake",
    endpoint="http://out:2",
    endpoint_internal="http://in:1/",
)


def test_a_catalog_within_the_rules_gets_them():
    assert find_named(CONFIG, OWNER, SETTINGS) is LAKE


def test_a_name_that_nobody_configured_is_a_label():
    assert find_named(replace(CONFIG, storage_name="other"), OWNER, SETTINGS) is None
    assert find_named(replace(CONFIG, storage_name=None), OWNER, SETTINGS) is None


def test_keys_of_the_catalogs_own_come_first():
    assert find_named(replace(CONFIG, sealed_keys=b"sealed", endpoint="http://own"), OWNER, SETTINGS) is None


@pytest.mark.parametrize(
    ("config", "owner", "field"),
    [
        (replace(CONFIG, allowed_locations=("s3://bkt/team-a2",)), OWNER, "allowedLocations"),
        (replace(CONFIG, allowed_locations=("s3://bkt",)), OWNER, "allowedLocations"),
        (replace(CONFIG, allowed_locations=("s3://bkt/team-a", "s3://else")), OWNER, "allowedLocations"),
        (replace(CONFIG, endpoint="http://evil"), OWNER, "endpoint"),
        (replace(CONFIG, endpoint_internal="http://evil"), OWNER, "endpointInternal"),
        (replace(CONFIG, sts=S3Sts(endpoint="http://evil")), OWNER, "stsEndpoint"),
        (replace(CONFIG, endpoint=None, endpoint_internal=None), OWNER, "endpoint"),
        (CONFIG, ("third", "1"), "storageName"),
    ],
)
def test_nothing_beyond_the_rules_is_served(config: S3Storage, owner: tuple[str, str], field: str):
    with pytest.raises(BadInput) as refused:
        find_named(config, owner, SETTINGS)

    assert refused.value.field == field


def test_without_endpoints_only_amazons_own_is_served():
    settings = StorageSettings(credentials={"lake": replace(LAKE, endpoints=())})
    amazon = replace(CONFIG, endpoint=None, endpoint_internal=None)

    assert find_named(amazon, OWNER, settings) is not None
    for changes in ({"endpoint": "http://x"}, {"endpoint_internal": "http://x"}):
        with pytest.raises(BadInput):
            find_named(replace(amazon, **changes), OWNER, settings)


def test_a_catalog_that_would_break_the_rules_is_not_made():
    storages = Storages(lambda: KEYRING, SETTINGS, SystemClock())
    outside = replace(CONFIG, allowed_locations=("s3://bkt/team-b",))

    with pytest.raises(BadInput):
        storages.seal(outside, None, OWNER)
    assert storages.seal(CONFIG, None, OWNER) == CONFIG
    assert storages.seal(outside, S3Keys("own", Secret("own")), OWNER).sealed_keys is not None


@pytest.mark.anyio
async def test_a_catalog_that_was_made_before_the_rules_opens_and_reaches_nothing():
    outside = replace(CONFIG, allowed_locations=("s3://bkt/team-b",))
    storage = Storages(lambda: KEYRING, SETTINGS, SystemClock()).get(outside, OWNER)

    with pytest.raises(StorageRefused, match="not open to the named credentials"):
        await storage.files.read(Location.parse("s3://bkt/team-b/file"))

    assert storage.vending is None
    assert storage.signer is None


@pytest.mark.anyio
async def test_files_are_reached_with_them(plain_s3_server: S3Server):
    place = Location.parse(plain_s3_server.fresh_location())
    named = StorageCredentials(
        access_key_id=plain_s3_server.access_key_id,
        secret_access_key=Secret(plain_s3_server.secret_access_key),
        locations=(place.text,),
        endpoints=(plain_s3_server.endpoint,),
    )
    storages = Storages(lambda: KEYRING, StorageSettings(credentials={"here": named}), SystemClock())
    config = S3Storage(
        allowed_locations=(place.text,),
        storage_name="here",
        endpoint=plain_s3_server.endpoint,
        path_style_access=True,
        sts=S3Sts(is_unavailable=True),
    )
    files = storages.get(config, OWNER).files

    await files.write(place.child("file"), b"x")

    assert await files.read(place.child("file")) == b"x"
    await files.delete(place.child("file"))


# --- settings -----------------------------------------------------------------------------------------------


def load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "cynosure.toml"
    path.write_text(text)
    settings = read_settings(Settings, [read_file(path)])
    check_settings(settings)
    return settings


def test_named_keys_are_read_from_the_settings_and_not_shown(tmp_path: Path):
    (tmp_path / "secret").write_text("from the file\n")
    text = f"""
        [storage.credentials.lake]
        access_key_id = "KEY"
        secret_access_key = {{ file = "{tmp_path / "secret"}" }}
        locations = ["s3://bkt/a"]
    """

    settings = load(tmp_path, text)

    assert settings.storage.credentials["lake"].secret_access_key.reveal() == "from the file"
    assert "from the file" not in repr(settings)


@pytest.mark.parametrize(
    "text",
    [
        '[storage]\ncredential_lifetime = "14m"',
        '[storage]\ncredential_lifetime = "13h"',
        '[storage]\nscan_credential_lifetime = "14m"',
        "[storage]\nmin_remaining_life = 1.0",
        "[storage]\nmax_concurrent = 0",
        '[storage.credentials.x]\naccess_key_id = "a"\nsecret_access_key = "b"\nlocations = []',
        '[storage.credentials.x]\naccess_key_id = "a"\nsecret_access_key = "b"\nlocations = ["s3://b/../c"]',
        '[storage.credentials.x]\naccess_key_id = "a"\nsecret_access_key = "b"',
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(tmp_path: Path, text: str):
    with pytest.raises(Misconfigured):
        load(tmp_path, text)
