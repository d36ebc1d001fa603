"""Tokens of Google: the exact requests that are sent. No emulator checks what a boundary allows."""

import base64
import json

import pytest

from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.gcs.boundary import make_boundary
from cynosure.storage.access.gcs.tokens import GcsTokens
from cynosure.storage.access.gcs.vendor import GcsVendor, client_config
from cynosure.storage.access.ports import Scope
from cynosure.storage.config import GcsKeys, GcsStorage
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.vendor_kit import ALICE
from tests.storage.recorded_service import RecordedService, Reply

from .google import EMAIL, READER, answer, make_keys, read_assertion

pytestmark = pytest.mark.anyio

ORDERS = Scope((Location.parse("gs://bkt/db/orders"), Location.parse("gs://bkt/x")), is_writable=True)
START_MS = 1_767_225_600_000
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


def open_tokens(
    service: RecordedService, clock: ManualClock, *, account: str | None = None, keys: GcsKeys | None = None
) -> GcsTokens:
    config = GcsStorage(
        allowed_locations=("gs://bkt",), gcs_service_account=account, token_endpoint=service.url
    )
    return GcsTokens(config, keys or make_keys(), TokenService(StorageSettings()), clock)


async def test_a_token_is_downscoped_from_that_of_the_service_account(manual_clock: ManualClock):
    async with RecordedService(answer) as service:
        vended = await GcsVendor(open_tokens(service, manual_clock)).mint(ORDERS, ALICE)

    granted, exchanged = service.heard
    assert granted.path == "/token"
    header, claims = read_assertion(granted)
    assert granted.form()["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert set(granted.form()) == {"grant_type", "assertion"}
    assert (header["kid"], header["alg"]) == ("key-1", "RS256")
    assert claims == {
        "iss": EMAIL,
        "scope": CLOUD_PLATFORM,
        "aud": "https://oauth2.googleapis.com/token",
        "iat": START_MS // 1000,
        "exp": START_MS // 1000 + 3600,
    }
    assert exchanged.path == "/v1/token"
    assert exchanged.headers["content-type"] == "application/x-www-form-urlencoded"
    assert exchanged.form() == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": ACCESS_TOKEN,
        "subject_token_type": ACCESS_TOKEN,
        "subject_token": "own",
        "options": make_boundary(ORDERS).decode(),
    }
    assert (vended.issued_ms, vended.expires_ms) == (START_MS, START_MS + 3_600_000)
    assert [each.prefix for each in vended.credentials] == ["gs://bkt/db/orders", "gs://bkt/x"]
    assert vended.credentials[0].config == {
        "gcs.oauth2.token": "downscoped",
        "gcs.oauth2.token-expires-at": str(START_MS + 3_600_000),
    }


async def test_a_named_account_is_impersonated_first(manual_clock: ManualClock):
    async with RecordedService(answer) as service:
        vended = await GcsVendor(open_tokens(service, manual_clock, account=READER)).mint(ORDERS, ALICE)

    _, impersonated, exchanged = service.heard
    assert impersonated.path == f"/v1/projects/-/serviceAccounts/{READER}:generateAccessToken"
    assert impersonated.headers["authorization"] == "Bearer own"
    assert json.loads(impersonated.body) == {"scope": [CLOUD_PLATFORM], "lifetime": "3600s"}
    assert exchanged.form()["subject_token"] == "impersonated"
    assert vended.expires_ms == START_MS + 3_000_000


async def test_a_client_token_is_made_from_a_fresh_one_and_ends_with_it(manual_clock: ManualClock):
    async with RecordedService(answer) as service:
        vendor = GcsVendor(open_tokens(service, manual_clock))
        await vendor.mint(ORDERS, ALICE)
        await manual_clock.advance(5 * 60)
        second = await vendor.mint(ORDERS, ALICE)
        await manual_clock.advance(2 * 60)
        third = await vendor.mint(ORDERS, ALICE)

    assert [heard.path for heard in service.heard].count("/token") == 2
    assert second.expires_ms - second.issued_ms == 55 * 60_000
    assert third.expires_ms - third.issued_ms == 60 * 60_000


async def test_what_google_refuses_is_refused_and_shows_neither_key_nor_token(manual_clock: ManualClock):
    async with RecordedService(answer) as service:
        vendor = GcsVendor(open_tokens(service, manual_clock))
        service.answer = lambda _: Reply(b'{"error": "invalid_grant", "error_description": "own"}', 400)
        with pytest.raises(StorageRefused, match="invalid_grant") as refused:
            await vendor.mint(ORDERS, ALICE)
        service.answer = lambda heard: answer(heard) if heard.path == "/token" else Reply(b"", 503)
        with pytest.raises(StorageUnavailable) as failed:
            await vendor.mint(ORDERS, ALICE)

    shown = str(refused.value) + str(failed.value)
    assert "own" not in shown
    assert "PRIVATE" not in shown


async def test_a_key_that_cannot_sign_is_refused_before_anything_is_sent(manual_clock: ManualClock):
    keys = GcsKeys(EMAIL, "key-1", Secret(base64.b64encode(b"hunter2").decode()))
    async with RecordedService(answer) as service:
        with pytest.raises(StorageRefused) as refused:
            await GcsVendor(open_tokens(service, manual_clock, keys=keys)).mint(ORDERS, ALICE)

    assert service.heard == []
    assert refused.value.__cause__ is None


async def test_a_token_that_has_expired_by_our_clock_is_not_given_away(manual_clock: ManualClock):
    await manual_clock.advance(2 * 3600)
    async with RecordedService(answer) as service:
        with pytest.raises(StorageUnavailable, match="clock"):
            await GcsVendor(open_tokens(service, manual_clock, account=READER)).mint(ORDERS, ALICE)


async def test_too_many_buckets_cost_no_request(manual_clock: ManualClock):
    many = Scope(tuple(Location.parse(f"gs://bkt{number}/x") for number in range(11)), is_writable=False)
    async with RecordedService(answer) as service:
        with pytest.raises(StorageRefused):
            await GcsVendor(open_tokens(service, manual_clock)).mint(many, ALICE)

    assert service.heard == []


async def test_without_a_token_endpoint_the_hosts_are_those_of_google(manual_clock: ManualClock):
    tokens = GcsTokens(
        GcsStorage(allowed_locations=("gs://bkt",)),
        make_keys(),
        TokenService(StorageSettings()),
        manual_clock,
    )

    assert tokens._address("https://sts.googleapis.com", "/v1/token") == "https://sts.googleapis.com/v1/token"
    assert client_config(GcsStorage(allowed_locations=("gs://bkt",))) == {}
    assert client_config(GcsStorage(allowed_locations=("gs://bkt",), endpoint="https://gcs.example.com")) == {
        "gcs.service.host": "https://gcs.example.com"
    }
