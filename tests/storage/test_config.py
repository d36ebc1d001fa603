import msgspec
import pytest

from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.check_config import check_bucket_hosts, check_storage
from cynosure.storage.config import (
    AzureKeys,
    AzureStorage,
    FileStorage,
    GcsKeys,
    GcsStorage,
    S3Keys,
    S3Kms,
    S3Storage,
    S3Sts,
    StorageConfig,
    StorageKeys,
    allowed_locations,
    open_azure_keys,
    open_gcs_keys,
    open_s3_keys,
    seal_keys,
)
from cynosure.storage.location import Location

KEYRING = Keyring({"k1": b"1" * 32}, "k1")
KEYS = S3Keys("AKIA", Secret("hunter2"))
OWNER = ("default", "42")
ROOTS = [Location.parse("/data/warehouse")]
S3 = S3Storage(allowed_locations=("s3://bkt/a",), sealed_keys=seal_keys(KEYS, KEYRING, OWNER))


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

GCS_KEYS = GcsKeys("catalog@project.iam.gserviceaccount.com", "AKIA", Secret("hunter2"))
GCS = GcsStorage(
    allowed_locations=("gs://bkt/a", "gs://other"),
    gcs_service_account="lake@project.iam.gserviceaccount.com",
    endpoint="https://gcs.example.com",
    token_endpoint="http://127.0.0.1:9000",
    sealed_keys=seal_keys(GCS_KEYS, KEYRING, OWNER),
    storage_name="archive",
)
AZURE_KEYS = AzureKeys("AKIA", Secret("hunter2"))
AZURE = AzureStorage(
    allowed_locations=("abfss://lake@acct.dfs.core.windows.net/a", "wasb://pond@acct.blob.core.windows.net"),
    tenant_id="11111111-2222-3333-4444-555555555555",
    multi_tenant_app_name="Cynosure",
    consent_url="https://login.microsoftonline.com/consent?client_id=x",
    hierarchical=True,
    endpoint="https://127.0.0.1:9000",
    authority_host="https://login.example.com",
    sealed_keys=seal_keys(AZURE_KEYS, KEYRING, OWNER),
    storage_name="archive",
)
ALL_KEYS = [(KEYS, open_s3_keys), (GCS_KEYS, open_gcs_keys), (AZURE_KEYS, open_azure_keys)]


@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
@pytest.mark.parametrize("config", [S3, FULL, GCS, AZURE, FileStorage(("/data/warehouse/a",))])
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
        (msgspec.structs.replace(S3, endpoint="http://host?"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://host#"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://host\n"), "endpoint"),
        (msgspec.structs.replace(S3, endpoint="http://ho\nst"), "endpoint"),
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
        (msgspec.structs.replace(GCS, allowed_locations=("s3://bkt/a",)), "allowedLocations"),
        (msgspec.structs.replace(GCS, gcs_service_account="lake"), "gcsServiceAccount"),
        (msgspec.structs.replace(GCS, gcs_service_account="a@b/../c"), "gcsServiceAccount"),
        (msgspec.structs.replace(GCS, gcs_service_account="a@b:generateIdToken?x"), "gcsServiceAccount"),
        (msgspec.structs.replace(GCS, endpoint="http://gcs.example.com"), "endpoint"),
        (msgspec.structs.replace(GCS, token_endpoint="http://10.0.0.1"), "tokenEndpoint"),
        (msgspec.structs.replace(GCS, token_endpoint="https://user:password@host"), "tokenEndpoint"),
        (msgspec.structs.replace(GCS, storage_name=""), "storageName"),
        (msgspec.structs.replace(AZURE, allowed_locations=("gs://bkt/a",)), "allowedLocations"),
        (
            msgspec.structs.replace(
                AZURE,
                allowed_locations=(*AZURE.allowed_locations, "abfss://lake@acct2.dfs.core.windows.net/a"),
            ),
            "allowedLocations",
        ),
        (
            msgspec.structs.replace(
                AZURE, endpoint=None, allowed_locations=("abfss://lake@acct.dfs.evil.example.com/a",)
            ),
            "allowedLocations",
        ),
        (
            msgspec.structs.replace(
                AZURE, endpoint=None, allowed_locations=("abfss://lake@acct.dfs.evilcore.windows.net/a",)
            ),
            "allowedLocations",
        ),
        (msgspec.structs.replace(AZURE, tenant_id=""), "tenantId"),
        (msgspec.structs.replace(AZURE, tenant_id="a/../b"), "tenantId"),
        (msgspec.structs.replace(AZURE, tenant_id="a..b"), "tenantId"),
        (msgspec.structs.replace(AZURE, tenant_id="a?b=c"), "tenantId"),
        (msgspec.structs.replace(AZURE, consent_url="javascript:alert(1)"), "consentUrl"),
        (msgspec.structs.replace(AZURE, consent_url="https://host/\n"), "consentUrl"),
        (msgspec.structs.replace(AZURE, multi_tenant_app_name=""), "multiTenantAppName"),
        (msgspec.structs.replace(AZURE, endpoint="http://127.0.0.1:9000"), "endpoint"),
        (msgspec.structs.replace(AZURE, endpoint="acct.blob.core.windows.net"), "endpoint"),
        (msgspec.structs.replace(AZURE, authority_host="http://login.example.com"), "authorityHost"),
        (msgspec.structs.replace(AZURE, authority_host="https://login.example.com/tenant"), "authorityHost"),
        (msgspec.structs.replace(S3, storage_name=""), "storageName"),
        (FileStorage(("/data/warehouse",), storage_name="a\nb"), "storageName"),
    ],
)
def test_what_cannot_work_is_refused_by_field(config: StorageConfig, field: str):
    with pytest.raises(BadInput) as refused:
        check_storage(config, file_roots=ROOTS)

    assert refused.value.field == field
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("field", ["endpoint", "endpoint_internal"])
def test_a_bucket_has_no_host_below_an_address(field: str):
    by_address = msgspec.structs.replace(S3, **{field: "http://10.0.0.1:9000"})

    check_storage(by_address, file_roots=ROOTS)
    with pytest.raises(BadInput) as refused:
        check_bucket_hosts(by_address)

    assert refused.value.field == "pathStyleAccess"
    check_bucket_hosts(msgspec.structs.replace(by_address, path_style_access=True))
    check_bucket_hosts(msgspec.structs.replace(S3, **{field: "http://store.example.com"}))


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fe80::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "metadata.google.internal",
        "METADATA.google.internal.",
        # Numbers that resolvers read as an address, whole or behind a bucket.
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254",
        # Addresses of IPv4 inside others: translated by the network, and of old.
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[::a9fe:a9fe]",
    ],
)
def test_what_machines_are_told_by_their_cloud_is_no_store(host: str):
    url = f"http://{host}:80"
    for config in (
        msgspec.structs.replace(S3, endpoint=url),
        msgspec.structs.replace(S3, endpoint_internal=url),
        msgspec.structs.replace(S3, sts=S3Sts(endpoint=url)),
        msgspec.structs.replace(GCS, token_endpoint=url.replace("http:", "https:")),
        msgspec.structs.replace(AZURE, authority_host=url.replace("http:", "https:")),
    ):
        with pytest.raises(BadInput, match="told their own secrets"):
            check_storage(config, file_roots=[])


def test_what_works_is_accepted():
    check_storage(S3, file_roots=[])
    check_storage(FULL, file_roots=[])
    check_storage(GCS, file_roots=[])
    check_storage(AZURE, file_roots=[])
    for cloud in ("core.windows.net", "storage.azure.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"):
        place = (f"abfss://lake@acct.dfs.{cloud}",)
        check_storage(msgspec.structs.replace(AZURE, endpoint=None, allowed_locations=place), file_roots=[])
    check_storage(FileStorage(("file:///data/warehouse/a", "/data/warehouse")), file_roots=ROOTS)

    assert allowed_locations(S3) == (Location.parse("s3://bkt/a"),)


def test_without_file_roots_no_files_are_served():
    with pytest.raises(BadInput, match="not served here"):
        check_storage(FileStorage(("/data/warehouse",)), file_roots=[])


@pytest.mark.parametrize(("keys", "open_keys"), ALL_KEYS)
def test_sealed_keys_open_for_their_owner_only(keys: StorageKeys, open_keys):
    sealed = seal_keys(keys, KEYRING, OWNER)

    assert open_keys(sealed, KEYRING, OWNER) == keys
    for other in (("default", "43"), ("other", "42"), ("default",), ("default", "4", "2")):
        with pytest.raises(CorruptObject):
            open_keys(sealed, KEYRING, other)


def test_sealed_keys_do_not_open_as_those_of_another_cloud():
    for keys, _ in ALL_KEYS:
        sealed = seal_keys(keys, KEYRING, OWNER)
        for other, open_keys in ALL_KEYS:
            if other is not keys:
                with pytest.raises(CorruptObject):
                    open_keys(sealed, KEYRING, OWNER)


def test_keys_are_readable_neither_in_the_configuration_nor_in_print():
    for config, (keys, _) in zip((S3, GCS, AZURE), ALL_KEYS, strict=True):
        stored = msgspec.msgpack.encode(config) + repr((config, keys)).encode()
        assert b"hunter2" not in stored
        assert b"AKIA" not in msgspec.msgpack.encode(config)
        with pytest.raises(TypeError):
            msgspec.json.encode(keys)


@pytest.mark.parametrize("clear", [b"nonsense", msgspec.msgpack.encode(("a",)), msgspec.msgpack.encode(7)])
def test_sealed_bytes_of_another_kind_are_corrupt(clear: bytes):
    for kind, (_, open_keys) in zip(("s3", "gcs", "azure"), ALL_KEYS, strict=True):
        sealed = KEYRING.encrypt(clear, ("storage", f"{kind}-keys", *OWNER))
        with pytest.raises(CorruptObject):
            open_keys(sealed, KEYRING, OWNER)


def test_keys_of_s3_that_were_sealed_before_other_clouds_were_known_still_open():
    """Stored with every catalog: two texts in an array, bound to a purpose and the owner."""
    sealed = KEYRING.encrypt(
        msgspec.msgpack.encode(("AKIA", "hunter2")), ("storage", "s3-keys", "default", "42")
    )

    assert open_s3_keys(sealed, KEYRING, OWNER) == KEYS


def test_golden_encoding_of_a_configuration():
    """Stored with every catalog: this changes only by adding fields."""
    config = S3Storage(allowed_locations=("s3://b/a",), sealed_keys=b"\x01")

    assert msgspec.msgpack.encode(config).hex() == (
        "83ab73746f7261676554797065a25333b0616c6c6f7765644c6f636174696f6e7391a873333a2f2f622f61"
        "aa7365616c65644b657973c40101"
    )


def test_the_names_of_other_clouds_are_those_of_the_management_api():
    google = GcsStorage(allowed_locations=("gs://b",), gcs_service_account="a@b", sealed_keys=b"\x01")
    azure = AzureStorage(allowed_locations=("abfss://b",), tenant_id="t", hierarchical=True)

    assert msgspec.json.decode(msgspec.json.encode(google)) == {
        "storageType": "GCS",
        "allowedLocations": ["gs://b"],
        "gcsServiceAccount": "a@b",
        "sealedKeys": "AQ==",
    }
    assert msgspec.json.decode(msgspec.json.encode(azure)) == {
        "storageType": "AZURE",
        "allowedLocations": ["abfss://b"],
        "tenantId": "t",
        "hierarchical": True,
    }
