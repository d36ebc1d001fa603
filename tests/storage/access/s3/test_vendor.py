"""The kit on both servers that enforce session policies, and what is S3's own."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.session_policy import session_policy
from cynosure.storage.access.s3.sts import AssumeRole, SecurityTokens
from cynosure.storage.access.s3.vendor import (
    S3Vendor,
    can_vend,
    client_config,
    dialect_of,
    is_amazon,
    kms_keys_of,
    session_name,
    session_tags,
    sts_url,
)
from cynosure.storage.config import S3Kms, S3Storage, S3Sts
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.faults import Respond
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import ALICE, BOB, ExpiryKit, Shop, VendorKit

from .boto_client import BotoClient, _session
from .sts_corner import SHORT, StsCorner

pytestmark = pytest.mark.anyio
ROLE = "arn:aws:iam::123456789012:role/lake"


class TestS3Vendor(VendorKit):
    @pytest.fixture
    def shop(self, sts: StsCorner, request: pytest.FixtureRequest) -> Shop:
        if sts.server.name == "seaweedfs" and "test_case_tells_names_apart" in request.node.name:
            gap = "SeaweedFS 4.48 compares the resources of policies without regard to case"
            request.applymarker(pytest.mark.xfail(strict=True, reason=gap))
        return sts.shop()


class BriefVendor:
    """Leaves the lifetime to the server, and that of the tests gives seconds: less than can be asked for."""

    def __init__(self, corner: StsCorner) -> None:
        config = corner.config
        self._role = config.sts.role_arn
        self._dialect = dialect_of(config)
        self._tokens = SecurityTokens(
            sts_url(config), config.region, corner.source, TokenService(SHORT), SystemClock(), retries=0
        )

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        policy = session_policy(scope, self._dialect)
        session = await self._tokens.assume(AssumeRole("brief", policy, role_arn=self._role))
        assert session.expires_ms is not None
        credentials = tuple(Credential(each.text, session.to_properties()) for each in scope.locations)
        return Vended(credentials, SystemClock().now_us() // 1000, session.expires_ms)


@pytest.mark.parametrize("sts_server", ["seaweedfs"], indirect=True)
class TestExpiry(ExpiryKit):
    @pytest.fixture
    def shop(self, sts: StsCorner) -> Shop:
        return sts.shop()._replace(vendor=BriefVendor(sts))


async def test_a_credential_is_what_a_fileio_of_a_client_takes(sts: StsCorner):
    vended = await sts.vendor().mint(Scope((sts.base,), is_writable=False), ALICE)

    config = vended.credentials[0].config
    assert set(config) == {
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.session-token-expires-at-ms",
    }
    assert config["s3.access-key-id"] != sts.keys.access_key_id
    life_ms = vended.expires_ms - vended.issued_ms
    # The server tells whole seconds.
    assert abs(life_ms - 15 * 60 * 1000) < 60_000


async def test_a_session_cannot_assume_its_role_again(sts: StsCorner):
    """Without a policy it would reach all that the role does."""
    await sts.shop().owner.put(sts.elsewhere.child("file"), b"secret")
    vended = await sts.vendor().mint(Scope((sts.base,), is_writable=True), ALICE)
    config = vended.credentials[0].config

    tokens = _session().client(
        "sts",
        endpoint_url=sts.server.endpoint,
        region_name=sts.server.region,
        aws_access_key_id=config["s3.access-key-id"],
        aws_secret_access_key=config["s3.secret-access-key"],
        aws_session_token=config["s3.session-token"],
    )
    with pytest.raises(tokens.exceptions.ClientError) as refused:
        tokens.assume_role(RoleArn=sts.server.role_arn or ROLE, RoleSessionName="again")

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 403)


async def test_a_role_that_means_nothing_to_the_store_does_no_harm(sts: StsCorner):
    """Installations write one because a form asks for it; such a store knows no rules about roles either."""
    if sts.server.role_arn is not None:
        with pytest.raises(StorageRefused) as refused:
            await sts.vendor(sts=S3Sts(role_arn=ROLE)).mint(Scope((sts.base,), is_writable=True), ALICE)
        assert refused.value.details["code"]
        return
    vendor = sts.vendor(sts=S3Sts(role_arn=ROLE))
    shop = sts.shop()._replace(vendor=vendor)
    await shop.owner.put(sts.base.child("orders", "file"), b"x")

    for _ in range(2):
        vended = await vendor.mint(Scope((sts.base.child("orders"),), is_writable=True), ALICE)

    client = BotoClient(sts.server, vended.credentials[0].config)
    assert await client.get(sts.base.child("orders", "file")) == b"x"


@pytest.mark.parametrize("sts_server", ["seaweedfs"], indirect=True)
async def test_a_store_that_lets_sessions_out_and_takes_no_rule_against_it_is_not_used(
    sts: StsCorner, fault_proxy
):
    """A store with roles whose policies do not know the action, made of one that has both."""
    proxy = await fault_proxy(sts.server.endpoint)
    proxy.add(
        Respond(400, b"<Error><Code>MalformedPolicyDocument</Code></Error>"),
        when=lambda request: b"sts%3A%2A" in request.data,
        times=None,
    )
    vendor = sts.vendor(sts=S3Sts(role_arn=sts.server.role_arn, endpoint=proxy.url))

    for _ in range(2):
        with pytest.raises(StorageRefused, match="assume its role again"):
            await vendor.mint(Scope((sts.base,), is_writable=True), ALICE)


async def test_a_wrong_key_is_refused_with_the_code_of_the_store_and_no_more(sts: StsCorner):
    keys = StaticKeys(S3Session("NOSUCHKEY", sts.keys.secret_access_key))
    vendor = S3Vendor(sts.config, keys, SHORT, SystemClock())

    with pytest.raises(StorageRefused) as refused:
        await vendor.mint(Scope((sts.base,), is_writable=True), ALICE)

    assert refused.value.details["status"] == 403
    assert refused.value.details["code"].isalnum()
    assert sts.keys.secret_access_key.reveal() not in str(refused.value)


async def test_a_store_without_a_token_service_is_an_error_not_a_way_around(plain_s3_server: S3Server):
    corner = StsCorner(plain_s3_server)
    vendor = corner.vendor(StorageSettings(retries=0))

    with pytest.raises(CynosureError):
        await vendor.mint(Scope((corner.base,), is_writable=True), ALICE)


async def test_tags_are_taken(sts: StsCorner):
    settings = StorageSettings(session_tags=True, credential_lifetime=timedelta(minutes=15))

    vended = await sts.vendor(settings).mint(Scope((sts.base,), is_writable=True), ALICE)

    assert vended.credentials


# --- what is written into a request ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alice", "Alice Ålström", "a/b*c${x}", "x" * 500, "", "\n", "日本"])
def test_session_names_are_as_the_service_wants_them(name: str):
    found = session_name(Subject("default", name, 1, "c", "t"))

    assert found.startswith("cynosure-")
    assert 2 <= len(found) <= 64
    assert all(each.isascii() and (each.isalnum() or each in "_+=,.@-") for each in found)


def test_no_two_principals_share_a_session_name():
    alike = ["a/b", "a*b", "a_b", "x" * 50, "x" * 51, ALICE.principal]
    subjects = [
        Subject(realm, name, number, "c", "t")
        for realm in ("default", "other", "default1")
        for name in alike
        for number in (1, 11)
    ]

    assert len({session_name(each) for each in subjects}) == len(subjects)
    assert session_name(ALICE) == session_name(replace(ALICE, table="another"))
    assert session_name(ALICE) != session_name(BOB)


def test_tags_hold_only_what_tags_may():
    tags = session_tags(Subject("default", "a${x}", 1, "c*", "ns." + "t" * 300))

    assert set(tags) == {"cynosure-realm", "cynosure-catalog", "cynosure-table", "cynosure-principal"}
    assert tags["cynosure-principal"] == "a__x_"
    assert max(map(len, tags.values())) == 256


# --- what a configuration means ---------------------------------------------------------------------------


def s3(**changes: object) -> S3Storage:
    return replace(S3Storage(allowed_locations=("s3://bkt/x",), region="eu-west-1"), **changes)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (s3(), "https://sts.eu-west-1.amazonaws.com"),
        (s3(region="cn-north-1"), "https://sts.cn-north-1.amazonaws.com.cn"),
        (s3(endpoint="https://s3.eu-west-1.amazonaws.com"), "https://sts.eu-west-1.amazonaws.com"),
        (s3(endpoint="http://out:1"), "http://out:1"),
        (s3(endpoint="http://out:1", endpoint_internal="http://in:2"), "http://in:2"),
        (s3(endpoint="http://out:1", sts=S3Sts(endpoint="http://sts:3")), "http://sts:3"),
    ],
)
def test_the_address_of_the_token_service(config: S3Storage, expected: str):
    assert sts_url(config) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (s3(), True),
        (s3(endpoint="https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com"), True),
        (s3(endpoint="https://amazonaws.com.evil.example"), False),
        (s3(endpoint="https://evilamazonaws.com"), False),
        (s3(endpoint_internal="http://in:2"), False),
        (s3(sts=S3Sts(endpoint="http://in:2")), False),
    ],
)
def test_only_amazons_own_policies_are_known_to_have_escapes(config: S3Storage, expected: bool):
    assert is_amazon(config) is expected
    assert dialect_of(config).has_escapes is expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (s3(), False),
        (s3(sts=S3Sts(role_arn=ROLE)), True),
        (s3(endpoint="http://minio:9000"), True),
        (s3(endpoint="http://minio:9000", sts=S3Sts(is_unavailable=True)), False),
        (s3(sts=S3Sts(role_arn=ROLE, is_unavailable=True)), False),
    ],
)
def test_where_credentials_can_be_had(config: S3Storage, expected: bool):
    assert can_vend(config) is expected


def test_resources_are_named_in_the_world_of_the_role():
    config = s3(sts=S3Sts(role_arn="arn:aws-cn:iam::1:role/x"))

    text = session_policy(Scope((Location.parse("s3://bkt/x"),), is_writable=True), dialect_of(config))

    assert '"arn:aws-cn:s3:::bkt/x/*"' in text
    assert "arn:aws:" not in text


def test_keys_of_the_key_service_are_the_configured_ones_each_once():
    config = s3(kms=S3Kms(current_key="k1", allowed_keys=("k2", "k1")))

    assert kms_keys_of(config) == ("k1", "k2")
    assert kms_keys_of(replace(config, kms=replace(config.kms, is_unavailable=True))) == ()


def test_clients_are_told_where_the_store_is_and_never_the_servers_own_way():
    told = client_config(s3(endpoint="http://out:1", endpoint_internal="http://in:2", path_style_access=True))

    assert told == {
        "client.region": "eu-west-1",
        "s3.endpoint": "http://out:1",
        "s3.path-style-access": "true",
    }
    assert client_config(s3()) == {"client.region": "eu-west-1"}
