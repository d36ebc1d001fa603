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
from cynosure.storage.config import (
    AzureKeys,
    FileStorage,
    GcsKeys,
    GcsStorage,
    S3Keys,
    S3Storage,
    S3Sts,
    StorageConfig,
)
from tests.storage.access.gcs.google import EMAIL, key_file

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
GCS: dict[str, Any] = {
    "storageType": "GCS",
    "allowedLocations": ["gs://bucket/more"],
    "storageName": "archive",
    "gcsServiceAccount": "lake@project.iam.gserviceaccount.com",
    "endpoint": "https://gcs.example.com",
    "tokenEndpoint": "https://tokens.example.com",
}
GCS_KEYS = {"serviceAccountKey": key_file()}
LAKE = "abfss://lake@acct.dfs.core.windows.net"
AZURE: dict[str, Any] = {
    "storageType": "AZURE",
    "allowedLocations": [f"{LAKE}/more"],
    "storageName": "archive",
    "tenantId": "11111111-2222-3333-4444-555555555555",
    "multiTenantAppName": "Cynosure",
    "consentUrl": "https://login.microsoftonline.com/consent",
    "hierarchical": True,
    "endpoint": "https://azure.example.com",
    "authorityHost": "https://login.example.com",
}
AZURE_KEYS = {"clientId": "client-1", "clientSecret": "hunter2"}


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

    assert isinstance(chosen.keys, S3Keys)
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


# --- Google and Azure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "info", "keys"),
    [("gs://bucket/base", GCS, GCS_KEYS), (f"{LAKE}/base", AZURE, AZURE_KEYS)],
)
def test_every_field_of_a_cloud_comes_back_as_it_was_sent_and_no_key_does(
    base: str, info: dict[str, Any], keys: dict[str, str]
) -> None:
    sent = read({**info, **keys})

    chosen = choose_storage(base, sent)

    assert shown(chosen.config) == {**info, "allowedLocations": [*info["allowedLocations"], base]}
    assert chosen.keys is not None
    everything = repr(sent) + repr(chosen) + str(shown(chosen.config))
    assert not any(secret in everything for secret in ("hunter2", "PRIVATE KEY"))
    assert "client-1" not in repr(sent) + str(shown(chosen.config))


def test_the_keys_of_a_cloud_are_read() -> None:
    google = choose_storage("gs://bucket", read({**GCS, **GCS_KEYS})).keys
    azure = choose_storage(LAKE, read({**AZURE, **AZURE_KEYS})).keys

    assert isinstance(google, GcsKeys)
    assert google.client_email == EMAIL
    assert isinstance(azure, AzureKeys)
    assert (azure.client_id, azure.client_secret.reveal()) == ("client-1", "hunter2")


@pytest.mark.parametrize(
    ("info", "field"),
    [
        ({**AZURE, "clientId": "client-1"}, "clientId"),
        ({**AZURE, "clientSecret": "hunter2"}, "clientId"),
        ({**GCS, "serviceAccountKey": "hunter2"}, "serviceAccountKey"),
    ],
)
def test_keys_that_are_not_whole_are_refused(info: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        choose_storage(info["allowedLocations"][0], read(info))

    assert refused.value.field == f"storageConfigInfo.{field}"
    assert "hunter2" not in str(refused.value)


STORED_CLOUDS = {
    "GCS": (
        msgspec.structs.replace(choose_storage("gs://bucket", read(GCS)).config, sealed_keys=b"sealed"),
        GCS,
        GCS_KEYS,
    ),
    "AZURE": (
        msgspec.structs.replace(choose_storage(LAKE, read(AZURE)).config, sealed_keys=b"sealed"),
        AZURE,
        AZURE_KEYS,
    ),
}


@pytest.mark.parametrize(
    ("kind", "field", "value", "blamed"),
    [
        ("GCS", "endpoint", "https://elsewhere.example.com", "serviceAccountKey"),
        ("GCS", "endpoint", None, "serviceAccountKey"),
        ("GCS", "tokenEndpoint", "https://elsewhere.example.com", "serviceAccountKey"),
        ("AZURE", "endpoint", "https://elsewhere.example.com", "clientId"),
        ("AZURE", "endpoint", None, "clientId"),
        ("AZURE", "authorityHost", "https://elsewhere.example.com", "clientId"),
        ("AZURE", "authorityHost", None, "clientId"),
    ],
)
def test_stored_keys_of_a_cloud_are_not_sent_to_another_address(
    kind: str, field: str, value: str | None, blamed: str
) -> None:
    stored, info, keys = STORED_CLOUDS[kind]
    entity = catalog_on(stored, info["allowedLocations"][0])

    with pytest.raises(BadInput) as refused:
        change_storage(entity, "", read({**info, field: value}))

    assert refused.value.field == f"storageConfigInfo.{blamed}"
    assert change_storage(entity, "", read({**info, field: value, **keys})).keys is not None


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("GCS", "gcsServiceAccount", "other@project.iam.gserviceaccount.com"),
        ("GCS", "gcsServiceAccount", None),
        ("AZURE", "tenantId", "99999999-2222-3333-4444-555555555555"),
        ("AZURE", "allowedLocations", ["abfss://lake@evil.dfs.core.windows.net/more"]),
        ("AZURE", "allowedLocations", ["abfss://lake@acct.dfs.core.chinacloudapi.cn/more"]),
    ],
)
def test_whom_a_cloud_trusts_is_set_once(kind: str, field: str, value: object) -> None:
    stored, info, keys = STORED_CLOUDS[kind]
    base = value[0] if isinstance(value, list) else info["allowedLocations"][0]

    with pytest.raises(BadInput) as refused:
        change_storage(catalog_on(stored, base), "", read({**info, **keys, field: value}))

    assert refused.value.field == f"storageConfigInfo.{field}"


def test_a_change_without_keys_keeps_those_of_a_cloud_and_another_spelling_of_its_account_is_no_change() -> (
    None
):
    for kind, changed in (
        ("GCS", {"storageName": "other"}),
        ("AZURE", {"allowedLocations": ["wasb://pond@acct.blob.core.windows.net"], "hierarchical": False}),
    ):
        stored, info, _ = STORED_CLOUDS[kind]
        chosen = change_storage(
            catalog_on(stored, info["allowedLocations"][0]), "", read({**info, **changed})
        )
        assert not isinstance(chosen.config, FileStorage)
        assert (chosen.config.sealed_keys, chosen.keys) == (b"sealed", None)


def test_one_cloud_does_not_become_another() -> None:
    with pytest.raises(BadInput) as refused:
        change_storage(catalog_on(STORED), "gs://bucket", read({**GCS, **GCS_KEYS}))

    assert refused.value.field == "storageConfigInfo.storageType"
    assert choose_storage("gs://bucket", read({"storageType": "GCS"})).config == GcsStorage(
        allowed_locations=("gs://bucket",)
    )
