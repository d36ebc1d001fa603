"""What a server must say before a client repeats a change: all of it, in the right words (I80)."""

from typing import Any

import httpx
import msgspec
import pytest

from cynosure.client.catalog import CatalogApi
from cynosure.client.discovery import CATALOG_PATH, MANAGEMENT_PATH, parse_lifetime_s, read_lifetime_s
from cynosure.client.management import Management
from tests.client.scripted import PROMISE, Hands, Scripted

pytestmark = pytest.mark.anyio

OK = httpx.Response(200, json={"namespace": ["a"]})


def lifetime_of(config: Any) -> float | None:
    return read_lifetime_s(msgspec.json.encode(config))


@pytest.mark.parametrize(
    "config",
    [
        {"properties": PROMISE},
        {"defaults": PROMISE, "overrides": {}},
        {"idempotency-key-lifetime": "PT30M"},
        {"properties": PROMISE, "defaults": {**PROMISE, "other": "x"}, "idempotency-key-lifetime": "PT30M"},
        {"properties": {"other": "x"}, "defaults": PROMISE},
    ],
)
def test_a_promise_is_in_any_of_three_places(config: Any) -> None:
    assert lifetime_of(config) == 1800.0


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"properties": {}},
        {"properties": {"idempotency-key-supported": "true"}},
        {"properties": {"idempotency-key-lifetime": "PT30M"}},
        {"properties": {**PROMISE, "idempotency-key-supported": "false"}},
        {"properties": {**PROMISE, "idempotency-key-supported": "True"}},
        {"properties": {**PROMISE, "idempotency-key-supported": True}},
        {"properties": {**PROMISE, "idempotency-key-lifetime": "30 minutes"}},
        {"properties": {**PROMISE, "idempotency-key-lifetime": 1800}},
        {"properties": {**PROMISE, "idempotency-key-lifetime": "PT0S"}},
        {"properties": None},
        {"idempotency-key-lifetime": "1800"},
        {"idempotency-key-lifetime": 1800},
        {"properties": {"idempotency-key-supported": "false"}, "idempotency-key-lifetime": "PT30M"},
        {"properties": PROMISE, "defaults": {**PROMISE, "idempotency-key-lifetime": "soon"}},
        [],
        "PT30M",
    ],
)
def test_what_is_not_said_properly_is_no_promise(config: Any) -> None:
    assert lifetime_of(config) is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[" * 5000, b'{"properties": {"a"'])
def test_what_is_no_config_is_no_promise(body: bytes) -> None:
    assert read_lifetime_s(body) is None


def test_of_two_promises_the_shorter_counts() -> None:
    assert lifetime_of({"properties": PROMISE, "idempotency-key-lifetime": "PT5M"}) == 300.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT30M", 1800.0),
        ("PT1H30M", 5400.0),
        ("P1D", 86400.0),
        ("P1DT1S", 86401.0),
        ("P2W", 1209600.0),
        ("PT0.5S", 0.5),
        ("PT1,5S", 1.5),
        ("PT90S", 90.0),
    ],
)
def test_durations_are_those_of_iso_8601(text: str, seconds: float) -> None:
    assert parse_lifetime_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "P",
            "PT",
            "P1DT",
            "30M",
            "T30M",
            "PT30",
            "PT30m",
            "pt30M",
            " PT30M",
            "PT30M\n",
            "-PT30M",
            "PT-30M",
        ),
        *("+PT30M", "P1Y", "P1M", "P1W1D", "PT1M1H", "PT1.5M", "PT.5S", "PT5.S", "PT٣M", "PT0S", "P0D"),
        "PT9999999999S",
    ],
)
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_lifetime_s(text) is None


async def test_a_catalog_is_asked_once_and_each_on_its_own() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        for name in ("lake", "lake", "sea & sand"):
            await CatalogApi(api, name).drop_namespace(("a",))

    assert [each.path for each in server.configs] == [CATALOG_PATH] * 2
    assert [each.params["warehouse"] for each in server.configs] == ["lake", "sea & sand"]


async def test_the_management_api_is_asked_without_a_catalog() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        await Management(api).delete_principal("ann")
        await Management(api).delete_principal("bob")

    assert [each.path for each in server.configs] == [MANAGEMENT_PATH]


@pytest.mark.parametrize("status", [400, 403, 404, 405])
async def test_a_server_that_knows_no_config_promises_nothing(status: int) -> None:
    server = Scripted(Hands(), OK, config_status=status)
    with server.client() as api:
        await Management(api).delete_principal("ann")
        await Management(api).delete_principal("bob")

    assert server.keys == [None, None]
    assert len(server.configs) == 1, "it is not asked again"


async def test_a_server_that_fails_to_say_is_asked_again_for_the_next_change() -> None:
    server = Scripted(Hands(), OK, config_status=500)
    with server.client() as api:
        await Management(api).delete_principal("ann")
        server.config_status = 200
        await Management(api).delete_principal("bob")

    assert server.keys[0] is None
    assert server.keys[1] is not None
