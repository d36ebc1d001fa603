"""One request, however it is spelt on the wire, and never two as one: I73 and I75."""

import json
from typing import Any

import httpx
import pytest

from tests.robustness.attacks.idempotency.lake import (
    LAKE,
    NAMESPACES,
    error_type,
    is_replayed,
    keyed,
    told,
)

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("value", [b"k1 ", b"k1\t", b" \tk1 \t"])
async def test_white_space_around_a_key_is_not_part_of_it(root: httpx.AsyncClient, value: bytes) -> None:
    wanted = {"namespace": ["x"]}
    first = await root.post(NAMESPACES, json=wanted, headers=keyed("k1"))

    again = await root.post(NAMESPACES, json=wanted, headers=[(b"idempotency-key", value)])

    assert told(again) == told(first)
    assert is_replayed(again)


@pytest.mark.parametrize(
    "url",
    [
        "http://test/api/catalog/v1/%6cake/namespaces",
        "http://test/api/catalog/v1/lake/%6eamespaces",
        "http://test/api/catalog/v1/lake/namespaces?unknown=1",
        "http://test/api/catalog/v1/lake/namespaces?",
    ],
)
async def test_another_spelling_of_the_path_is_the_same_request(root: httpx.AsyncClient, url: str) -> None:
    wanted = {"namespace": ["x"]}
    first = await root.post(NAMESPACES, json=wanted, headers=keyed())

    again = await root.post(url, json=wanted, headers=keyed())

    assert told(again) == told(first)
    assert is_replayed(again)


@pytest.mark.parametrize("path", ["//lake/namespaces", "/lake/namespaces/", "/LAKE/namespaces"])
async def test_another_path_is_never_the_same_request(root: httpx.AsyncClient, path: str) -> None:
    wanted = {"namespace": ["x"]}
    await root.post(NAMESPACES, json=wanted, headers=keyed())

    other = await root.post(
        httpx.URL(LAKE, raw_path=f"/api/catalog/v1{path}".encode()), json=wanted, headers=keyed()
    )

    assert other.status_code == 404
    assert not is_replayed(other)


async def test_of_two_members_of_one_name_the_one_counts_that_is_used(root: httpx.AsyncClient) -> None:
    first = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=keyed())
    bodies = [b'{"namespace":["y"],"namespace":["x"]}', b'{"namespace":["x"],"namespace":["y"]}']

    same, other = [await root.post(NAMESPACES, content=body, headers={**JSON, **keyed()}) for body in bodies]

    assert told(same) == told(first)
    assert (other.status_code, error_type(other)) == (422, "idempotency_key_conflict")


async def test_snapshots_whose_ids_differ_in_the_last_digit_are_two(root: httpx.AsyncClient) -> None:
    """RFC 8785 would make one number of them."""

    def change(snapshot_id: int) -> dict[str, Any]:
        update = {"action": "remove-snapshots", "snapshot-ids": [snapshot_id]}
        return {"requirements": [], "updates": [update]}

    table = f"{NAMESPACES}/ns/tables/t"
    first = await root.post(table, json=change(2**53), headers=keyed())

    other = await root.post(table, json=change(2**53 + 1), headers=keyed())

    assert first.status_code in (200, 400), first.text
    assert (other.status_code, error_type(other)) == (422, "idempotency_key_conflict")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xef\xbb\xbf" + json.dumps({"namespace": ["x"]}).encode(),
        b"[" * 100_000,
        b'{"namespace":["\xff"]}',
    ],
    ids=["cut", "bom", "deep", "not UTF-8"],
)
async def test_what_is_no_request_neither_takes_a_key_nor_is_told_of_one(
    root: httpx.AsyncClient, body: bytes
) -> None:
    before = await root.post(NAMESPACES, content=body, headers={**JSON, **keyed()})
    first = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=keyed())
    after = await root.post(NAMESPACES, content=body, headers={**JSON, **keyed()})

    assert first.status_code == 200, first.text
    assert (before.status_code, after.status_code) == (400, 400)
    assert not is_replayed(after)
