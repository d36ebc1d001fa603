"""Absurd, broken and hostile requests for plans: a 4xx that names what is wrong with which field.

A maintainer must not break: after each of them the same server plans the same table as before.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import pytest

from tests.planning_oracle.conftest import Lake, open_lake
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.plans import plan_by_us

pytestmark = pytest.mark.anyio

SEED = 1016
TABLE = "namespaces/a/tables/t"
JSON = {"content-type": "application/json"}
DEEP = 10_000


@pytest.fixture(scope="module")
async def lake(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path_factory.mktemp("lake")) as lake:
        yield lake


@pytest.fixture(scope="module")
async def table(lake: Lake) -> AsyncIterator[RandomTable]:
    """A table of several pages. After all that was asked, it is planned as it was before."""
    table = lake.make_table(SEED, is_plain=True)
    await lake.register(table)
    before = await plan_by_us(lake.client, TABLE, {})
    assert len(before) > 4
    yield table
    assert await plan_by_us(lake.client, TABLE, {}) == before


@pytest.fixture
async def damaged(tmp_path: Path) -> AsyncIterator[tuple[Lake, RandomTable]]:
    """A table of its own, to be damaged."""
    async with open_lake(tmp_path) as lake:
        table = lake.make_table(SEED, is_plain=True)
        await lake.register(table)
        yield lake, table


def error_of(answer: httpx.Response, status: int = 400) -> str:
    assert answer.status_code == status, answer.text[:500]
    error = answer.json()["error"]
    assert error["code"] == status
    message: str = error["message"]
    return message


async def refused(lake: Lake, body: Any, status: int = 400) -> str:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return error_of(await lake.client.post(f"{TABLE}/plan", content=content, headers=JSON), status)


def nested(opening: bytes, leaf: bytes, closing: bytes) -> bytes:
    return b'{"filter":' + opening * DEEP + leaf + closing * DEEP + b"}"


LEAF = b'{"type":"is-null","term":"%b"}'
DEEP_FILTERS = {
    "not": (b'{"type":"not","child":', LEAF, b"}"),
    "and, left": (b'{"type":"and","left":', LEAF, b',"right":true}'),
    "or, right": (b'{"type":"or","left":true,"right":', LEAF, b"}"),
    "transform of a transform": (b'{"type":"transform","transform":"day","term":', b'"%b"', b"}"),
    "call in a call": (
        b'{"type":"apply","function":"day","arguments":[',
        b'{"type":"reference","name":"%b"}',
        b"]}",
    ),
    "list": (b"[", b"%b", b"]"),
    "object": (b'{"x":', b'"%b"', b"}"),
}


@pytest.mark.parametrize("kind", DEEP_FILTERS)
async def test_a_filter_ten_thousand_deep_is_refused(lake: Lake, table: RandomTable, kind: str) -> None:
    opening, leaf, closing = DEEP_FILTERS[kind]
    name = table.shape.leaves()[0].path.encode()
    inner = b"1" if kind == "list" else leaf % name

    message = await refused(lake, nested(opening, inner, closing))

    # The decoder of the whole body may be the first to give up.
    assert "filter" in message or "recursion" in message


@pytest.mark.parametrize("key", ["select", "stats-fields", "snapshot-id", "other"])
async def test_lists_ten_thousand_deep_beside_the_filter_are_refused(
    lake: Lake, table: RandomTable, key: str
) -> None:
    await refused(lake, b'{"' + key.encode() + b'":' + b"[" * DEEP + b"]" * DEEP + b"}")


@pytest.mark.parametrize(
    "predicate",
    [
        {"type": "eq", "term": "nothing", "value": 1},
        {"type": "eq", "left": {"type": "reference", "name": "nothing"}, "right": 1},
        {"type": "in", "term": "nothing", "values": [1]},
        {"type": "is-null", "child": {"type": "reference", "name": "nothing"}},
        {"type": "not", "child": {"type": "is-null", "term": "nothing"}},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "nothing"}, "value": 1},
    ],
)
async def test_an_unknown_column_is_named(lake: Lake, table: RandomTable, predicate: Any) -> None:
    message = await refused(lake, {"filter": predicate})

    assert "filter" in message
    assert "nothing" in message


async def test_a_column_by_an_unknown_id_is_named(lake: Lake, table: RandomTable) -> None:
    predicate = {"type": "is-null", "child": {"type": "reference", "id": 99_999}}

    assert "99999" in await refused(lake, {"filter": predicate})


@pytest.mark.parametrize("key", ["select", "stats-fields"])
async def test_an_unknown_name_in_a_list_is_named(lake: Lake, table: RandomTable, key: str) -> None:
    message = await refused(lake, {key: [table.shape.leaves()[0].path, "nothing"]})

    assert key in message
    assert "nothing" in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filter", 7),
        ("filter", "x"),
        ("filter", []),
        ("filter", {}),
        ("filter", {"type": "fly"}),
        ("filter", {"type": "eq", "term": 7, "value": 1}),
        ("filter", {"type": "and", "left": True}),
        ("filter", {"type": "in", "term": "x", "values": 7}),
        ("filter", {"type": "eq", "term": "x", "value": {"a": 1}}),
        ("select", "x"),
        ("select", [7]),
        ("stats-fields", {"a": 1}),
        ("snapshot-id", "x"),
        ("snapshot-id", 1.5),
        ("snapshot-id", 2**63),
        ("start-snapshot-id", []),
        ("end-snapshot-id", True),
        ("case-sensitive", "yes"),
        ("use-snapshot-schema", 1),
        ("min-rows-requested", "many"),
    ],
)
async def test_a_value_of_a_wrong_type_is_refused_with_its_field(
    lake: Lake, table: RandomTable, field: str, value: Any
) -> None:
    assert field in await refused(lake, {field: value})


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null", b'{"filter":}'])
async def test_a_broken_body_is_refused(lake: Lake, table: RandomTable, body: bytes) -> None:
    await refused(lake, body)


async def test_a_constant_of_another_type_names_the_column(lake: Lake, table: RandomTable) -> None:
    for leaf in table.shape.leaves():
        predicate = {
            "type": "eq",
            "term": leaf.path,
            "value": "certainly not" if leaf.type != "string" else 7,
        }

        message = await refused(lake, {"filter": predicate})

        assert leaf.path in message


async def test_a_set_beyond_all_measure_is_refused(lake: Lake, table: RandomTable) -> None:
    leaf = table.shape.leaves()[0]
    predicate = {"type": "in", "term": leaf.path, "values": [*range(300_000)]}

    assert "filter" in await refused(lake, {"filter": predicate})


async def test_a_filter_of_too_many_parts_is_refused(lake: Lake, table: RandomTable) -> None:
    """Wide, not deep: a balanced tree of 32,768 leaves."""
    node: Any = {"type": "is-null", "term": table.shape.leaves()[0].path}
    for _ in range(15):
        node = {"type": "or", "left": node, "right": node}

    assert "filter" in await refused(lake, {"filter": node})


@pytest.mark.parametrize(
    "keys",
    [
        ("start-snapshot-id",),
        ("end-snapshot-id",),
        ("snapshot-id", "start-snapshot-id", "end-snapshot-id"),
        ("snapshot-id", "start-snapshot-id"),
        ("snapshot-id", "end-snapshot-id"),
    ],
)
async def test_snapshot_ids_that_contradict_each_other_are_refused(
    lake: Lake, table: RandomTable, keys: tuple[str, ...]
) -> None:
    ids = dict(zip(keys, [one.id for one in table.snapshots], strict=False))

    assert "snapshot-id" in await refused(lake, ids)


async def test_a_start_that_is_not_before_the_end_is_refused(lake: Lake, table: RandomTable) -> None:
    first, last = table.snapshots[0].id, table.snapshots[-1].id

    message = await refused(lake, {"start-snapshot-id": last, "end-snapshot-id": first})

    assert "start-snapshot-id" in message


@pytest.mark.parametrize("key", ["snapshot-id", "start-snapshot-id", "end-snapshot-id"])
async def test_an_unknown_snapshot_is_named(lake: Lake, table: RandomTable, key: str) -> None:
    body = {"start-snapshot-id": table.snapshots[0].id, "end-snapshot-id": table.snapshots[-1].id}
    body = {key: 424_242} if key == "snapshot-id" else {**body, key: 424_242}

    answer = await lake.client.post(f"{TABLE}/plan", json=body)

    assert answer.status_code in (400, 404), answer.text
    assert "424242" in answer.json()["error"]["message"]


STRANGE_IDS = ["x", "0" * 40, "AAAA", "a" * 5_000, "é", "%00", "%22"]


@pytest.mark.parametrize("plan_id", STRANGE_IDS)
async def test_a_made_up_plan_or_task_is_unknown(lake: Lake, table: RandomTable, plan_id: str) -> None:
    path = f"{TABLE}/plan/{quote(plan_id, safe='%')}"

    for answer in (
        await lake.client.get(path),
        await lake.client.delete(path),
        await lake.client.post(f"{TABLE}/tasks", json={"plan-task": plan_id}),
    ):
        assert answer.status_code in (400, 404), answer.text


async def test_a_plan_of_another_table_is_unknown(lake: Lake, table: RandomTable) -> None:
    other = "namespaces/a/tables/other"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
    made = await lake.client.post("namespaces/a/tables", json={"name": "other", "schema": schema})
    assert made.status_code == 200, made.text
    plan = (await lake.client.post(f"{TABLE}/plan", json={})).json()
    assert plan["plan-tasks"]

    fetched = await lake.client.get(f"{other}/plan/{quote(plan['plan-id'])}")
    tasks = await lake.client.post(f"{other}/tasks", json={"plan-task": plan["plan-tasks"][0]})

    assert fetched.json()["error"]["type"] == "NoSuchPlanIdException"
    assert tasks.json()["error"]["type"] == "NoSuchPlanTaskException"
    assert fetched.status_code == tasks.status_code == 404


async def test_a_task_that_somebody_changed_is_unknown(lake: Lake, table: RandomTable) -> None:
    plan = (await lake.client.post(f"{TABLE}/plan", json={})).json()
    task: str = plan["plan-tasks"][0]

    for at in range(0, len(task), max(1, len(task) // 25)):
        changed = task[:at] + ("A" if task[at] != "A" else "B") + task[at + 1 :]
        answer = await lake.client.post(f"{TABLE}/tasks", json={"plan-task": changed})
        # A last character may hold bits that stand for nothing.
        assert answer.status_code == 404 or at == len(task) - 1, answer.text


def manifests_of(table: RandomTable) -> list[Path]:
    return [Path(urlsplit(one.path).path) for one in table.snapshots[-1].manifests]


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "no manifest": lambda data: b"PAR1" + data[4:],
    "a byte changed in the block": lambda data: data[:-30] + bytes([data[-30] ^ 0xFF]) + data[-29:],
    "longer": lambda data: data + b"\x00" * 7,
}


@pytest.mark.parametrize("damage", [one for one in DAMAGES if "changed" not in one])
async def test_a_damaged_manifest_is_named_and_its_scan_is_not_answered(
    damaged: tuple[Lake, RandomTable], damage: str
) -> None:
    lake, table = damaged
    broken = manifests_of(table)[0]
    broken.write_bytes(DAMAGES[damage](broken.read_bytes()))

    answer = await lake.client.post(f"{TABLE}/plan", json={})
    waiting = answer.json().get("plan-tasks", [])
    while waiting and answer.status_code == 200:
        answer = await lake.client.post(f"{TABLE}/tasks", json={"plan-task": waiting.pop(0)})
        waiting += answer.json().get("plan-tasks", [])

    assert broken.name in error_of(answer)


async def test_a_damaged_byte_gives_an_error_or_a_whole_plan(damaged: tuple[Lake, RandomTable]) -> None:
    """Avro has no checksum: such a byte may be part of a value. The server goes on either way."""
    lake, table = damaged
    path = manifests_of(table)[0]
    path.write_bytes(DAMAGES["a byte changed in the block"](path.read_bytes()))

    answer = await lake.client.post(f"{TABLE}/plan", json={})

    assert answer.status_code == 200 or path_named(answer, table), answer.text


def path_named(answer: httpx.Response, table: RandomTable) -> bool:
    return any(path.name in answer.text for path in manifests_of(table))
