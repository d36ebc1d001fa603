from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import FileStorage, S3Keys, S3Storage, seal_s3_keys
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.open_fileio import FileIOs
from cynosure.storage.settings import StorageSettings

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")


@pytest.fixture
def fileios(tmp_path: Path) -> FileIOs:
    return FileIOs(lambda: KEYRING, StorageSettings(), file_roots=[Location.parse(str(tmp_path))])


@pytest.fixture
def s3() -> S3Storage:
    sealed = seal_s3_keys(S3Keys("a", Secret("b")), KEYRING, OWNER)
    return S3Storage(allowed_locations=("s3://bkt/a",), sealed_keys=sealed)


@pytest.mark.anyio
async def test_a_configuration_becomes_a_fileio_that_works(fileios: FileIOs, tmp_path: Path):
    config = FileStorage((f"{tmp_path}/a",))

    await fileios.get(config, OWNER).write(Location.parse(f"{tmp_path}/a/file"), b"x")

    assert (tmp_path / "a" / "file").read_bytes() == b"x"


def test_each_type_has_its_backend(fileios: FileIOs, tmp_path: Path, s3: S3Storage):
    assert isinstance(fileios.get(FileStorage((str(tmp_path),)), OWNER), LocalFileIO)
    assert isinstance(fileios.get(s3, OWNER), S3FileIO)


def test_equal_configurations_share_one_and_others_do_not(fileios: FileIOs, s3: S3Storage):
    kept = fileios.get(s3, OWNER)

    assert fileios.get(replace(s3), list(OWNER)) is kept
    assert fileios.get(replace(s3, allowed_locations=("s3://bkt/b",)), OWNER) is not kept
    resealed = seal_s3_keys(S3Keys("a", Secret("new")), KEYRING, OWNER)
    assert fileios.get(replace(s3, sealed_keys=resealed), OWNER) is not kept
    fileios.close()
    assert fileios.get(s3, OWNER) is not kept


def test_keys_sealed_for_another_catalog_do_not_open(fileios: FileIOs, s3: S3Storage):
    with pytest.raises(CorruptObject):
        fileios.get(s3, ("default", "2"))


def test_a_configuration_is_checked_when_it_is_opened(fileios: FileIOs, s3: S3Storage):
    with pytest.raises(BadInput):
        fileios.get(FileStorage(("/etc",)), OWNER)
    with pytest.raises(BadInput):
        fileios.get(replace(s3, region="x/../y"), OWNER)


@pytest.mark.anyio
async def test_a_storage_without_keys_is_opened_and_reaches_nothing(fileios: FileIOs, s3: S3Storage):
    files = fileios.get(replace(s3, sealed_keys=None), OWNER)
    location = Location.parse(s3.allowed_locations[0]).child("file")

    for attempt in (files.read(location), files.write(location, b""), files.exists(location)):
        with pytest.raises(StorageRefused, match="no access key"):
            await attempt


def test_the_number_kept_is_bounded_and_the_used_ones_stay(fileios: FileIOs, tmp_path: Path):
    first = fileios.get(FileStorage((f"{tmp_path}/first",)), OWNER)
    second = fileios.get(FileStorage((f"{tmp_path}/second",)), OWNER)
    for number in range(1_023):
        fileios.get(FileStorage((f"{tmp_path}/{number}",)), OWNER)
        assert fileios.get(FileStorage((f"{tmp_path}/first",)), OWNER) is first

    assert fileios.get(FileStorage((f"{tmp_path}/second",)), OWNER) is not second
