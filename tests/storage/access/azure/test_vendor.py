"""Signatures for clients, on Azurite: what they open, what they do not, and for how long.

Azurite knows no directories, so what a directory's signature opens is not exercised here; `test_signature.py`
holds it to Azure's own library.
"""

from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.vendor import AzureVendor
from cynosure.storage.access.ports import Scope, Vended
from cynosure.storage.config import AzureKeys
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.vendor_kit import ALICE, BOB
from tests.storage.azure_corner import APPLICATION, HASTY, SECRET, TENANT, AzureCorner, make_token
from tests.storage.recorded_service import Heard, RecordedService, Reply

pytestmark = pytest.mark.anyio


def open_vendor(
    azure: AzureCorner,
    settings: StorageSettings | None = None,
    *,
    has_directories: bool = False,
    clock: ManualClock | SystemClock | None = None,
    keys: AzureKeys | None = None,
) -> AzureVendor:
    settings = settings or azure.settings
    clock = clock or SystemClock()
    tokens = azure.open_tokens(settings, clock=clock, keys=keys)
    return AzureVendor(
        Account.of(azure.config),
        tokens.signing_keys,
        clock,
        lifetime_ms=round(settings.credential_lifetime.total_seconds() * 1000),
        has_directories=has_directories,
    )


async def vend(azure: AzureCorner, *, is_writable: bool, **options: object) -> tuple[str, Vended]:
    """A signature for the whole container, as the query of a URL."""
    scope = Scope((azure.locate(azure.container),), is_writable)
    vended = await open_vendor(azure, **options).mint(scope, ALICE)
    return vended.credentials[0].config["adls.sas-token"], vended


async def put_file(azure: AzureCorner, container: str) -> None:
    assert await azure.ask("PUT", f"/{container}/file", token=make_token(), content=b"x") == 201


async def test_reading_opens_files_and_listings_of_its_container_only(azure: AzureCorner):
    for container in (azure.container, azure.other):
        await put_file(azure, container)
    query, _ = await vend(azure, is_writable=False)
    listing = "restype=container&comp=list"

    assert await azure.ask("GET", f"/{azure.container}/file?{query}") == 200
    assert await azure.ask("HEAD", f"/{azure.container}/file?{query}") == 200
    assert await azure.ask("GET", f"/{azure.container}?{listing}&{query}") == 200
    assert await azure.ask("PUT", f"/{azure.container}/new?{query}", content=b"y") == 403
    assert await azure.ask("PUT", f"/{azure.container}/file?{query}", content=b"y") == 403
    assert await azure.ask("DELETE", f"/{azure.container}/file?{query}") == 403
    assert await azure.ask("GET", f"/{azure.other}/file?{query}") == 403
    assert await azure.ask("GET", f"/{azure.other}?{listing}&{query}") == 403
    assert await azure.ask("DELETE", f"/{azure.container}?restype=container&{query}") == 403
    assert await azure.ask("GET", f"?comp=list&{query}") == 403


async def test_writing_opens_all_of_its_container_and_nothing_of_another(azure: AzureCorner):
    await put_file(azure, azure.other)
    query, _ = await vend(azure, is_writable=True)

    assert await azure.ask("PUT", f"/{azure.container}/a/b?{query}", content=b"y") == 201
    assert await azure.ask("PUT", f"/{azure.container}/a/b?{query}", content=b"z") == 201
    assert await azure.ask("GET", f"/{azure.container}/a/b?{query}") == 200
    assert await azure.ask("DELETE", f"/{azure.container}/a/b?{query}") == 202
    assert await azure.ask("PUT", f"/{azure.other}/new?{query}", content=b"y") == 403
    assert await azure.ask("DELETE", f"/{azure.other}/file?{query}") == 403
    assert await azure.ask("DELETE", f"/{azure.container}?restype=container&{query}") == 403


@pytest.mark.parametrize(("name", "value"), [("sp", "racwdl"), ("se", "2099-01-01T00:00:00Z"), ("sr", "b")])
async def test_a_changed_signature_opens_nothing(azure: AzureCorner, name: str, value: str):
    await put_file(azure, azure.container)
    query, _ = await vend(azure, is_writable=False)
    parts = {key: found for key, [found] in parse_qs(query).items()}
    before = f"{name}={parts[name].replace(':', '%3A')}"
    assert before in query

    changed = query.replace(before, f"{name}={value.replace(':', '%3A')}")

    assert await azure.ask("GET", f"/{azure.container}/file?{query}") == 200
    assert await azure.ask("GET", f"/{azure.container}/file?{changed}") == 403


async def test_a_signature_ends_when_it_says(azure: AzureCorner):
    await put_file(azure, azure.container)
    # By this clock an hour passed long ago, while the key that signed is still good by Azurite's.
    behind = ManualClock(now_us=SystemClock().now_us() - 90 * 60 * 1_000_000)

    query, vended = await vend(azure, is_writable=False, clock=behind)

    assert vended.expires_ms < SystemClock().now_us() // 1000
    assert await azure.ask("GET", f"/{azure.container}/file?{query}") == 403
    fresh, _ = await vend(azure, is_writable=False)
    assert await azure.ask("GET", f"/{azure.container}/file?{fresh}") == 200


async def test_clients_are_given_what_they_look_for_by_account_and_by_host(azure: AzureCorner):
    query, vended = await vend(azure, is_writable=False)
    [credential] = vended.credentials
    host = f"{azure.account}.dfs.core.windows.net"

    assert credential.prefix == azure.locate(azure.container).text
    assert credential.config == {
        "adls.account-name": azure.account,
        "adls.sas-token": query,
        f"adls.sas-token.{azure.account}": query,
        f"adls.sas-token.{host}": query,
        f"adls.sas-token-expires-at-ms.{host}": str(vended.expires_ms),
    }
    assert vended.expires_ms % 1000 == 0
    assert vended.expires_ms - vended.issued_ms <= 3_600_000
    assert "sig=" not in repr(vended)


# --- without the emulator's help: directories ---------------------------------------------------------------


async def test_a_directory_has_a_signature_of_its_own_where_the_account_has_directories(azure: AzureCorner):
    places = (azure.locate(azure.container, "db", "orders"), azure.locate(azure.other, "x y"))

    vended = await open_vendor(azure, has_directories=True).mint(Scope(places, is_writable=True), ALICE)

    signed = [parse_qs(each.config["adls.sas-token"]) for each in vended.credentials]
    assert [each.prefix for each in vended.credentials] == [place.text for place in places]
    assert [(each["sr"], each["sdd"], each["sp"]) for each in signed] == [
        (["d"], ["2"], ["racwdl"]),
        (["d"], ["1"], ["racwdl"]),
    ]
    assert signed[0]["sig"] != signed[1]["sig"]


async def test_without_directories_a_part_of_a_container_gets_nothing_rather_than_all_of_it(
    azure: AzureCorner,
):
    scope = Scope((azure.locate(azure.other), azure.locate(azure.container, "orders")), is_writable=False)

    with pytest.raises(StorageRefused, match="hierarchical"):
        await open_vendor(azure).mint(scope, ALICE)

    assert azure.login.heard == []


# --- tokens and keys ---------------------------------------------------------------------------------------


async def test_one_token_and_one_key_serve_many_until_the_key_is_half_gone(azure: AzureCorner):
    clock = ManualClock(now_us=SystemClock().now_us())
    vendor = open_vendor(azure, clock=clock)
    scope = Scope((azure.locate(azure.container),), is_writable=True)

    first = await vendor.mint(scope, ALICE)
    await clock.advance(30 * 60)
    second = await vendor.mint(scope, BOB)
    await clock.advance(31 * 60)
    third = await vendor.mint(scope, ALICE)

    keys = [parse_qs(each.credentials[0].config["adls.sas-token"])["skt"] for each in (first, second, third)]
    assert keys[0] == keys[1] != keys[2]
    assert all(each.expires_ms - each.issued_ms > 3_598_000 for each in (first, second, third))
    assert len(azure.login.heard) == 2


async def test_the_application_asks_for_exactly_a_token_of_storages(azure: AzureCorner):
    await vend(azure, is_writable=False)

    [heard] = azure.login.heard
    assert (heard.method, heard.path) == ("POST", f"/{TENANT}/oauth2/v2.0/token")
    assert heard.form() == {
        "grant_type": "client_credentials",
        "client_id": APPLICATION,
        "client_secret": SECRET,
        "scope": "https://storage.azure.com/.default",
    }


async def test_a_key_is_asked_for_twice_the_life_of_a_signature(
    azure: AzureCorner, manual_clock: ManualClock
):
    parts = {"SignedOid": "o", "SignedTid": "t", "SignedService": "b", "SignedVersion": "2025-01-05"}
    parts |= {"SignedStart": "2025-12-31T23:55:00Z", "SignedExpiry": "2026-01-01T00:40:00Z", "Value": "AAAA"}
    body = "".join(f"<{name}>{value}</{name}>" for name, value in parts.items()).encode()

    def answer(heard: Heard) -> Reply:
        return Reply(b"<UserDelegationKey>" + body + b"</UserDelegationKey>")

    async with RecordedService(answer) as account:
        tokens = azure.open_tokens(clock=manual_clock)
        tokens._account = replace(tokens._account, url=f"{account.url}/acct")
        key = await tokens.signing_keys.load(min_left_ms=0)

    [heard] = account.heard
    assert heard.path == "/acct/?restype=service&comp=userdelegationkey"
    assert heard.headers["x-ms-version"] == "2025-01-05"
    assert heard.headers["authorization"].startswith("Bearer ey")
    assert heard.body == (
        b"<KeyInfo><Start>2025-12-31T23:55:00Z</Start><Expiry>2026-01-01T02:00:00Z</Expiry></KeyInfo>"
    )
    assert key.expiry == "2026-01-01T00:40:00Z"
    assert key.expires_ms == 1_767_228_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<UserDelegationKey><SignedOid>o</SignedOid></UserDelegationKey>",
        b"<Value>hunter2</Value>",
        b"<!DOCTYPE x [<!ENTITY y 'z'>]><Value>&y;</Value>",
    ],
)
async def test_an_answer_that_is_not_a_key_is_refused(
    azure: AzureCorner, manual_clock: ManualClock, body: bytes
):
    async with RecordedService(lambda _: Reply(body)) as account:
        tokens = azure.open_tokens(clock=manual_clock)
        tokens._account = replace(tokens._account, url=account.url)
        with pytest.raises(StorageRefused, match="not understood") as refused:
            await tokens.signing_keys.load(min_left_ms=0)

    assert "hunter2" not in str(refused.value)


async def test_a_wrong_secret_is_refused_and_not_told(azure: AzureCorner):
    wrong = AzureKeys(APPLICATION, Secret("hunter2"))

    with pytest.raises(StorageRefused, match="invalid_client") as refused:
        await vend(azure, is_writable=False, keys=wrong)

    assert "hunter2" not in str(refused.value)


async def test_an_account_that_gives_no_key_says_what_the_application_lacks(azure: AzureCorner):
    azure.login.answer = lambda _: Reply(b'{"access_token": "not.a.token", "expires_in": 3600}')

    with pytest.raises(StorageRefused, match="Storage Blob Delegator"):
        await vend(azure, is_writable=False)


async def test_a_login_service_that_does_not_answer_is_unavailable(azure: AzureCorner):
    azure.login.answer = lambda _: None
    hasty = replace(HASTY, ca_file=azure.settings.ca_file)

    with pytest.raises(StorageUnavailable):
        await vend(azure, is_writable=False, settings=hasty)


async def test_the_life_of_a_signature_is_that_of_the_settings(azure: AzureCorner):
    settings = replace(azure.settings, credential_lifetime=timedelta(minutes=15))

    _, vended = await vend(azure, is_writable=False, settings=settings)

    assert 898_000 < vended.expires_ms - vended.issued_ms <= 900_000
