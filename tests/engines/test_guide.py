"""The programs of the guide to repeated requests, as they stand there, over a network that loses answers."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from cynosure.testing.catalog_server import CatalogServer, ServedCatalog
from cynosure.testing.harness.faults import CutAnswer, Fault, LoseAnswer, ReplaceAnswer, Request
from cynosure.testing.harness.http_proxy import HttpProxy, find_header, is_mutation, run_http_proxy
from tests.engines.pyiceberg_client import SCHEMA, read, rows
from tests.engines.readme import DOCUMENTED_URL

GUIDE = Path(__file__).parents[2] / "docs/guides/idempotency.md"
BLOCK = re.compile(r"^```(?:python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def proxy(catalog_server: CatalogServer) -> Iterator[HttpProxy]:
    with run_http_proxy(catalog_server.url) as proxy:
        yield proxy


@pytest.fixture
def lake(make_served_catalog: Callable[[], ServedCatalog]) -> ServedCatalog:
    return make_served_catalog()


def find_program(holding: str, lake: ServedCatalog, proxy: HttpProxy) -> str:
    """The one program with this text, for this catalog through the proxy."""
    [found] = [text for text in BLOCK.findall(GUIDE.read_text()) if holding in text]
    credential = lake.login.credential
    for documented, real in (
        (DOCUMENTED_URL, proxy.url),
        ("CLIENT_ID", credential.client_id),
        ("SECRET", credential.secret),
        ('"main"', f'"{lake.name}"'),
        ("/v1/main/", f"/v1/{lake.name}/"),
    ):
        found = found.replace(documented, real)
    return found


def lose_first_attempts(proxy: HttpProxy, fault: Fault) -> list[str]:
    """Lose the answer to the first attempt at every change; the keys of all attempts, in their order."""
    keys: list[str] = []

    def is_first(request: Request) -> bool:
        if not is_mutation(request):
            return False
        keys.append(find_header(request, "idempotency-key") or "")
        return keys.count(keys[-1]) == 1

    proxy.add(fault, when=is_first, times=None)
    return keys


def assert_held(keys: list[str], changes: int) -> None:
    assert "" not in keys
    assert len(keys) > changes, "some were sent again"
    assert len([key for key, _ in groupby(keys)]) == len(set(keys)) == changes


@pytest.mark.filterwarnings("ignore:Deprecated in 0.8.0:DeprecationWarning")
@pytest.mark.parametrize("fault", [LoseAnswer(), ReplaceAnswer(504), CutAnswer(after_bytes=200)], ids=str)
def test_pyiceberg_with_the_adapter_makes_every_change_once(
    lake: ServedCatalog, proxy: HttpProxy, fault: Fault
) -> None:
    program = find_program("class HoldsKeys", lake, proxy)
    names: dict[str, Any] = {}
    exec(program, names)
    catalog = names["catalog"]
    keys = lose_first_attempts(proxy, fault)

    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(rows("Oslo"))
    table.append(rows("Rome", first=2))

    assert_held(keys, changes=4)
    assert read(catalog.load_table("shop.orders")) == [(1, "Oslo"), (2, "Rome")]
    assert len(table.refresh().snapshots()) == 2


def test_our_client_makes_every_change_once_and_says_what_was_made_before(
    lake: ServedCatalog, proxy: HttpProxy
) -> None:
    keys = lose_first_attempts(proxy, LoseAnswer())

    ended = subprocess.run(
        [sys.executable, "-c", find_program("ApiClient", lake, proxy)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert keys[0] == keys[1]
    assert keys[2:] == ["order-17"] * 3, "once lost, once repeated, once more by the program"
    assert ended.stdout.splitlines() == [f"again: {keys[0]}", "again: order-17", "again: order-17"]


def test_curl_makes_a_change_once(
    lake: ServedCatalog, proxy: HttpProxy, catalog_server: CatalogServer
) -> None:
    keys = lose_first_attempts(proxy, ReplaceAnswer(504))
    program = find_program("curl", lake, proxy)

    ended = subprocess.run(
        ["bash", "-euc", program],
        env={"URL": proxy.url, "TOKEN": catalog_server.token(), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert_held(keys, changes=1)
    assert "HTTP/1.1 200" in ended.stdout
    assert "idempotency-replayed: true" in ended.stdout.lower()
