import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.common.telemetry.metrics import render
from cynosure.storage.config import FileStorage, S3Keys, S3Storage, S3Sts, seal_keys
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storages
from cynosure.storage.settings import StorageSettings

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")


@pytest.fixture
def storages(tmp_path: Path) -> Storages:
    return Storages(
        lambda: KEYRING, StorageSettings(), SystemClock(), file_roots=[Location.parse(str(tmp_path))]
    )


@pytest.fixture
def s3() -> S3Storage:
    sealed = seal_keys(S3Keys("a", Secret("b")), KEYRING, OWNER)
    return S3Storage(allowed_locations=("s3://bkt/a",), sealed_keys=sealed)


@pytest.mark.anyio
async def test_a_configuration_becomes_a_fileio_that_works(storages: Storages, tmp_path: Path):
    config = FileStorage((f"{tmp_path}/a",))

    await storages.get(config, OWNER).files.write(Location.parse(f"{tmp_path}/a/file"), b"x")

    assert (tmp_path / "a" / "file").read_bytes() == b"x"


ROLE = S3Sts(role_arn="arn:aws:iam::123456789012:role/lake")


@pytest.mark.parametrize(
    ("changes", "vends", "signs"),
    [
        ({}, False, True),
        ({"sts": ROLE}, True, True),
        ({"endpoint": "http://minio:9000"}, True, True),
        ({"endpoint": "http://minio:9000", "sts": S3Sts(is_unavailable=True)}, False, True),
        ({"sts": ROLE, "sealed_keys": None}, False, False),
    ],
)
def test_what_a_storage_gives_to_clients(
    storages: Storages, s3: S3Storage, changes: dict[str, object], vends: bool, signs: bool
):
    storage = storages.get(replace(s3, **changes), OWNER)

    assert (storage.vending is not None) == vends
    assert (storage.signer is not None) == signs
    assert storage.client_config["client.region"] == "us-east-1"


def test_local_files_are_not_given_away(storages: Storages, tmp_path: Path):
    storage = storages.get(FileStorage((str(tmp_path),)), OWNER)

    assert (storage.vending, storage.signer, dict(storage.client_config)) == (None, None, {})


@pytest.mark.anyio
async def test_every_storage_is_counted_bounded_and_logged_as_the_settings_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, metrics: None
):
    location = Location.parse(str(tmp_path)).child("file")
    for is_logged in (False, True):
        settings = StorageSettings(log_files=is_logged, max_concurrent=1)
        roots = [Location.parse(str(tmp_path))]
        storages = Storages(lambda: KEYRING, settings, SystemClock(), file_roots=roots)
        files = storages.get(FileStorage((str(tmp_path),)), OWNER).files
        with caplog.at_level("INFO"):
            await asyncio.gather(*(files.write(location, b"x", overwrite=True) for _ in range(8)))

    text = render().decode()
    assert 'cynosure_storage_operations_total{operation="write",outcome="ok",storage="file"} 16.0' in text
    assert [each.getMessage() for each in caplog.records].count("file.written") == 8


def test_equal_configurations_share_one_and_others_do_not(storages: Storages, s3: S3Storage):
    kept = storages.get(s3, OWNER)

    assert storages.get(replace(s3), list(OWNER)) is kept
    assert storages.get(replace(s3, allowed_locations=("s3://bkt/b",)), OWNER) is not kept
    resealed = seal_keys(S3Keys("a", Secret("new")), KEYRING, OWNER)
    assert storages.get(replace(s3, sealed_keys=resealed), OWNER) is not kept
    storages.close()
    assert storages.get(s3, OWNER) is not kept


def test_keys_sealed_for_another_catalog_do_not_open(storages: Storages, s3: S3Storage):
    with pytest.raises(CorruptObject):
        storages.get(s3, ("default", "2"))


def test_a_configuration_is_checked_when_it_is_opened(storages: Storages, s3: S3Storage):
    with pytest.raises(BadInput):
        storages.get(FileStorage(("/etc",)), OWNER)
    with pytest.raises(BadInput):
        storages.get(replace(s3, region="x/../y"), OWNER)


@pytest.mark.anyio
async def test_a_storage_without_keys_is_opened_and_reaches_nothing(storages: Storages, s3: S3Storage):
    files = storages.get(replace(s3, sealed_keys=None), OWNER).files
    location = Location.parse(s3.allowed_locations[0]).child("file")

    for attempt in (files.read(location), files.write(location, b""), files.exists(location)):
        with pytest.raises(StorageRefused, match="no access key"):
            await attempt


def test_the_number_kept_is_bounded_and_the_used_ones_stay(storages: Storages, tmp_path: Path):
    first = storages.get(FileStorage((f"{tmp_path}/first",)), OWNER)
    second = storages.get(FileStorage((f"{tmp_path}/second",)), OWNER)
    for number in range(1_023):
        storages.get(FileStorage((f"{tmp_path}/{number}",)), OWNER)
        assert storages.get(FileStorage((f"{tmp_path}/first",)), OWNER) is first

    assert storages.get(FileStorage((f"{tmp_path}/second",)), OWNER) is not second
