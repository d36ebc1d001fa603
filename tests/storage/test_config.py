import msgspec
import pytest

from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.config import (
    FileStorage,
    S3Keys,
    S3Kms,
    S3Storage,
    S3Sts,
    StorageConfig,
    allowed_locations,
    check_storage,
    open_s3_keys,
    seal_s3_keys,
)
from cynosure.storage.location import Location

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
KEYS = S3Keys("AKIA", Secret("hunter2"))
OWNER = ("default", "42")
ROOTS = [Location.parse("/data/warehouse")]
S3 = S3Storage(allowed_locations=("s3://bkt/a",), sealed_keys=seal_s3_keys(KEYS, KEYRING, OWNER))


FULL = msgspec.structs.replace(
    S3,
    storage_name="archive",
    sts=S3Sts(
        role_arn="arn:aws:iam::123456789012:role/lake-reader",
        external_id="company:lake",
        user_arn="arn:aws:iam::123456789012:user/catalog",
        endpoint="https://sts.example.com",
        is_unavailable=True,
    ),
    kms=S3Kms(
        current_key="arn:aws:kms:us-east-1:123456789012:key/0a-1b",
        allowed_keys=("arn:minio:kms:::key/old",),
        is_unavailable=True,
    ),
)


@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
@pytest.mark.parametrize("config", [S3, FULL, FileStorage(("/data/warehouse/a",))])
def test_a_configuration_survives_its_encoding(codec, config: StorageConfig):
    assert codec.decode(codec.encode(config), type=StorageConfig) == config


def test_the_names_are_those_of_the_management_api():
    shown = msgspec.json.decode(
        msgspec.json.encode(
            S3Storage(
                allowed_locations=("s3://bkt/a",),
                region="eu-west-1",
                endpoint="http://outside",
                endpoint_internal="http://inside",
                path_style_access=True,
            )
        )
    )

    assert shown == {
        "storageType": "S3",
        "allowedLocations": ["s3://bkt/a"],
        "region": "eu-west-1",
        "endpoint": "http://outside",
        "endpointInternal": "http://inside",
        "pathStyleAccess": True,
    }


def test_fields_of_a_newer_version_are_skipped():
    text = b'{"storageType": "FILE", "allowedLocations": ["/a"], "someday": 1}'

    assert msgspec.json.decode(text, type=StorageConfig) == FileStorage(("/a",))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (FileStorage(()), "allowedLocations"),
        (FileStorage(("s3://bkt/a",)), "allowedLocations"),
        (FileStorage(("/data/warehouse/../secret",)), "allowedLocations"),
        (FileStorage(("/data/warehouse2",)), "allowedLocations"),
        (FileStorage(("/data/warehouse/a", "/etc")), "allowedLocations"),
        (FileStorage(("/",)), "allowedLocations"),
        (msgspec.structs.replace(S3, allowed_locations=()), "allowedLocations"),
        (msgspec.structs.replace(S3, allowed_locations=("gs://bkt/a",)), "allowedLocations"),
        (msgspec.structs.replace(S3, allowed_locations=("/data/warehouse/a",)), "allowedLocations"),
        (msgspec.structs.replace(S3, region=""), "region"),
        (msgspec.structs.replace(S3, region="x/../y"), "region"),
        (msgspec.structs.replace(S3, endpoint="ftp://host"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="host:9000"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://user:password@host"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://host/path"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://host?query"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://host:99999"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint_internal="inside"), "endpointInternal"),
        (msgspec.structs.replace(S3, sts=S3Sts(endpoint="sts.example.com")), "stsEndpoint"),
        (msgspec.structs.replace(S3, sts=S3Sts(role_arn="role/reader")), "roleArn"),
        (msgspec.structs.replace(S3, sts=S3Sts(role_arn="arn:aws:iam::1:role/a b")), "roleArn"),
        (msgspec.structs.replace(S3, sts=S3Sts(user_arn="arn:aws")), "userArn"),
        (msgspec.structs.replace(S3, sts=S3Sts(external_id='"')), "externalId"),
        (msgspec.structs.replace(S3, kms=S3Kms(current_key="key")), "currentKmsKey"),
        (
            msgspec.structs.replace(S3, kms=S3Kms(allowed_keys=("arn:aws:kms:r:1:key/x", "k"))),
            "allowedKmsKeys",
        ),
        (msgspec.structs.replace(S3, storage_name=""), "storageName"),
        (FileStorage(("/data/warehouse",), storage_name="a\nb"), "storageName"),
    ],
)
def test_what_cannot_work_is_refused_by_field(config: StorageConfig, field: str):
    with pytest.raises(BadInput) as refused:
        check_storage(config, file_roots=ROOTS)

    assert refused.value.field == field
    assert "password" not in str(refused.value)


def test_what_works_is_accepted():
    check_storage(S3, file_roots=[])
    check_storage(FULL, file_roots=[])
    check_storage(FileStorage(("file:///data/warehouse/a", "/data/warehouse")), file_roots=ROOTS)

    assert allowed_locations(S3) == (Location.parse("s3://bkt/a"),)


def test_without_file_roots_no_files_are_served():
    with pytest.raises(BadInput, match="not served here"):
        check_storage(FileStorage(("/data/warehouse",)), file_roots=[])


def test_sealed_keys_open_for_their_owner_only():
    sealed = seal_s3_keys(KEYS, KEYRING, OWNER)

    assert open_s3_keys(sealed, KEYRING, OWNER) == KEYS
    for other in (("default", "43"), ("other", "42"), ("default",), ("default", "4", "2")):
        with pytest.raises(CorruptObject):
            open_s3_keys(sealed, KEYRING, other)


def test_keys_are_readable_neither_in_the_configuration_nor_in_print():
    stored = msgspec.msgpack.encode(S3) + repr((S3, KEYS)).encode()

    assert b"hunter2" not in stored
    assert b"AKIA" not in msgspec.msgpack.encode(S3)
    with pytest.raises(TypeError):
        msgspec.json.encode(KEYS)


def test_sealed_bytes_of_another_kind_are_corrupt():
    sealed = KEYRING.encrypt(b"nonsense", ("storage", "s3-keys", *OWNER))

    with pytest.raises(CorruptObject):
        open_s3_keys(sealed, KEYRING, OWNER)


def test_golden_encoding_of_a_configuration():
    """Stored with every catalog: this changes only by adding fields."""
    config = S3Storage(allowed_locations=("s3://b/a",), sealed_keys=b"\x01")

    assert msgspec.msgpack.encode(config).hex() == (
        "83ab73746f7261676554797065a25333b0616c6c6f7765644c6f636174696f6e7391a873333a2f2f622f61"
        "aa7365616c65644b657973c40101"
    )
