"""Storage configurations between the wire and the store."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.api.management import wire_catalogs as wire
from cynosure.api.management.storage import change_storage, choose_storage, describe_storage
from cynosure.catalog.entities import CatalogEntity
from cynosure.common.errors import BadInput
from cynosure.persistence.spi import CatalogId
from cynosure.storage.config import FileStorage, S3Storage, S3Sts, StorageConfig

S3: dict[str, Any] = {
    "storageType": "S3",
    "allowedLocations": ["s3://bucket/more"],
    "storageName": "archive",
    "roleArn": "arn:aws:iam::123456789012:role/lake",
    "externalId": "lake:1",
    "userArn": "arn:aws:iam::123456789012:user/catalog",
    "region": "eu-west-1",
    "endpoint": "https://s3.example.com",
    "endpointInternal": "https://s3.internal",
    "stsEndpoint": "https://sts.example.com",
    "stsUnavailable": True,
    "pathStyleAccess": True,
    "currentKmsKey": "arn:aws:kms:eu-west-1:123456789012:key/1",
    "allowedKmsKeys": ["arn:aws:kms:eu-west-1:123456789012:key/2"],
    "kmsUnavailable": True,
}
KEYS = {"accessKeyId": "AKIA", "secretAccessKey": "hunter2"}


def read(info: dict[str, Any]) -> Any:
    return msgspec.convert(info, wire.StorageConfigInfo)


def shown(config: StorageConfig) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(describe_storage(config)))
    return found


def catalog_on(storage: StorageConfig, base: str = "s3://bucket/base") -> CatalogEntity:
    return CatalogEntity(
        id=CatalogId("1"), name="lake", base_location=base, storage=storage, created_us=1, updated_us=1
    )


def test_every_field_of_an_s3_storage_comes_back_as_it_was_sent() -> None:
    chosen = choose_storage("s3://bucket/base/", read({**S3, **KEYS}))

    assert shown(chosen.config) == {**S3, "allowedLocations": ["s3://bucket/more", "s3://bucket/base"]}
    assert chosen.base == "s3://bucket/base"


def test_keys_are_read_and_never_shown() -> None:
    info = read({**S3, **KEYS})

    chosen = choose_storage("s3://bucket/base", info)

    assert chosen.keys is not None
    assert chosen.keys.secret_access_key.reveal() == "hunter2"
    answered = msgspec.json.encode(describe_storage(chosen.config)).decode()
    assert "hunter2" not in repr(info) + repr(chosen) + answered
    assert "AKIA" not in answered


def test_without_allowed_locations_the_base_location_is_the_one() -> None:
    chosen = choose_storage("s3://bucket/base", read({"storageType": "S3", **KEYS}))

    assert chosen.config.allowed_locations == ("s3://bucket/base",)


def test_null_is_the_same_as_left_out() -> None:
    nulls = dict.fromkeys(name for name in S3 if name != "storageType")

    chosen = choose_storage("s3://bucket/base", read({"storageType": "S3", **nulls, **KEYS}))

    assert chosen.config == S3Storage(allowed_locations=("s3://bucket/base",))


def test_links_in_local_locations_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    chosen = choose_storage(f"file://{tmp_path}/link/x", read({"storageType": "FILE"}))

    assert chosen.base == f"file://{tmp_path}/real/x"
    assert chosen.config == FileStorage((f"file://{tmp_path}/real/x",))


@pytest.mark.parametrize("info", [{"storageType": "GCS"}, {"storageType": "AZURE", "tenantId": "t"}])
def test_what_this_version_does_not_serve_is_refused_by_name(info: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="S3 or FILE") as refused:
        choose_storage("s3://bucket/base", read(info))

    assert refused.value.field == "storageConfigInfo.storageType"


@pytest.mark.parametrize("given", [{"accessKeyId": "AKIA"}, {"secretAccessKey": "hunter2"}])
def test_half_a_key_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadInput) as refused:
        choose_storage("s3://bucket/base", read({"storageType": "S3", **given}))

    assert refused.value.field == "storageConfigInfo.accessKeyId"
    assert "hunter2" not in str(refused.value)


STORED = msgspec.structs.replace(
    choose_storage("s3://bucket/base", read({**S3, **KEYS})).config, sealed_keys=b"sealed"
)


def test_a_change_without_keys_keeps_the_stored_ones() -> None:
    chosen = change_storage(catalog_on(STORED), "", read({**S3, "region": "eu-west-2"}))

    assert isinstance(chosen.config, S3Storage)
    assert (chosen.config.region, chosen.config.sealed_keys, chosen.keys) == ("eu-west-2", b"sealed", None)


def test_a_new_base_location_is_allowed_by_being_named() -> None:
    chosen = change_storage(catalog_on(STORED), "s3://other/place", None)

    assert chosen.base == "s3://other/place"
    assert chosen.config.allowed_locations == ("s3://bucket/more", "s3://bucket/base", "s3://other/place")


@pytest.mark.parametrize("field", ["endpoint", "endpointInternal", "stsEndpoint"])
@pytest.mark.parametrize("value", ["https://elsewhere.example.com", None])
def test_a_stored_key_is_not_sent_to_another_address(field: str, value: str | None) -> None:
    changed = {**S3, field: value}

    with pytest.raises(BadInput) as refused:
        change_storage(catalog_on(STORED), "", read(changed))

    assert refused.value.field == "storageConfigInfo.accessKeyId"
    assert change_storage(catalog_on(STORED), "", read({**changed, **KEYS})).keys is not None


@pytest.mark.parametrize("field", ["roleArn", "externalId"])
@pytest.mark.parametrize("value", ["arn:aws:iam::999999999999:role/evil", None])
def test_whom_a_storage_trusts_is_set_once(field: str, value: str | None) -> None:
    with pytest.raises(BadInput) as refused:
        change_storage(catalog_on(STORED), "", read({**S3, field: value, **KEYS}))

    assert refused.value.field == f"storageConfigInfo.{field}"


def test_a_role_can_be_added_later() -> None:
    without = msgspec.structs.replace(STORED, sts=S3Sts(endpoint=S3["stsEndpoint"]))

    chosen = change_storage(catalog_on(without), "", read(S3))

    assert isinstance(chosen.config, S3Storage)
    assert chosen.config.sts.role_arn == S3["roleArn"]


def test_the_kind_of_a_storage_cannot_be_changed() -> None:
    files = catalog_on(FileStorage(("file:///w",)), "file:///w")

    for entity, info in ((files, {**S3, **KEYS}), (catalog_on(STORED), {"storageType": "FILE"})):
        with pytest.raises(BadInput) as refused:
            change_storage(entity, "", read(info))
        assert refused.value.field == "storageConfigInfo.storageType"
