"""Columns, partitioning and sort order by names, over HTTP (I89)."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.common.clock import SystemClock
from cynosure.iceberg.metadata import parse_metadata
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import Backend
from cynosure.testing.crash_matrix.world import World as StoredWorld
from cynosure.testing.small_catalog import make_catalog, open_directory_in
from cynosure.testing.small_servers import KeptOpen, SmallServers

pytestmark = pytest.mark.anyio

FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
]
LAKE, OURS = "/api/catalog/v1/lake", "/api/catalog/cynosure/v1/lake"
T, SHAPE = f"{LAKE}/namespaces/a/tables/t", f"{OURS}/namespaces/a/tables/t"
NOTE = {"name": "note", "type": "string"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_directory_in(tmp_path) as directory:
        await make_catalog(directory, tmp_path, "lake")
        service = make_service(
            [*iceberg_routes(Catalogs(directory)), *cynosure_routes(Catalogs(directory))],
            title="t",
            version="1",
            clock=SystemClock(),
            rng=random.Random(1),
            gate=OperatorGate(),
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post(f"{LAKE}/namespaces", json={"namespace": ["a"]})
            schema = {"type": "struct", "fields": FIELDS}
            made = await client.post(f"{LAKE}/namespaces/a/tables", json={"name": "t", "schema": schema})
            assert made.status_code == 200
            yield client


async def test_columns_are_added_and_the_answer_is_that_of_a_commit(client: httpx.AsyncClient):
    before = (await client.get(T)).json()

    answer = await client.post(f"{SHAPE}/add-columns", json={"columns": [NOTE]})

    assert answer.status_code == 200
    loaded = await client.get(T)
    assert answer.headers["etag"] == loaded.headers["etag"]
    assert set(answer.json()) == {"metadata-location", "metadata"}
    assert {name: loaded.json()[name] for name in answer.json()} == answer.json()
    metadata = answer.json()["metadata"]
    assert (metadata["last-column-id"], metadata["current-schema-id"]) == (3, 1)
    assert metadata["metadata-log"][-1]["metadata-file"] == before["metadata-location"]
    (change,) = (await client.get(f"{OURS}/changes", params={"from": "oldest"})).json()["changes"][2:]
    assert (change["kind"], change["name"]) == ("table-updated", "t")


async def test_partitioning_and_sort_order_are_set_and_taken_back(client: httpx.AsyncClient):
    by_day = {"fields": [{"source": "ts", "transform": "day"}, {"source": "id", "transform": "bucket[16]"}]}
    spec = (await client.post(f"{SHAPE}/set-partitioning", json=by_day)).json()["metadata"]
    order = (await client.post(f"{SHAPE}/set-sort-order", json={"fields": [{"source": "ts"}]})).json()

    assert spec["partition-specs"][-1]["fields"] == [
        {"source-id": 2, "field-id": 1000, "name": "ts_day", "transform": "day"},
        {"source-id": 1, "field-id": 1001, "name": "id_bucket_16", "transform": "bucket[16]"},
    ]
    assert order["metadata"]["default-sort-order-id"] == 1
    for what in ("set-partitioning", "set-sort-order"):
        last = (await client.post(f"{SHAPE}/{what}", json={"fields": []})).json()["metadata"]
    assert (last["default-spec-id"], last["default-sort-order-id"]) == (0, 0)


async def test_what_is_so_already_makes_no_new_version(client: httpx.AsyncClient):
    order = {"fields": [{"source": "ts", "direction": "desc"}]}
    first = await client.post(f"{SHAPE}/set-sort-order", json=order)

    again = await client.post(f"{SHAPE}/set-sort-order", json=order)

    assert again.json() == first.json()


async def test_all_who_add_columns_at_once_succeed_with_ids_of_their_own(client: httpx.AsyncClient):
    async def add(number: int) -> httpx.Response:
        inner = {"type": "list", "element": "int", "element-required": False}
        columns = [{"name": f"c{number}", "type": inner}]
        return await client.post(f"{SHAPE}/add-columns", json={"columns": columns})

    answers = await asyncio.gather(*(add(number) for number in range(32)))

    assert [answer.status_code for answer in answers] == [200] * 32
    metadata = parse_metadata(msgspec.json.encode((await client.get(T)).json()["metadata"]))
    schema = metadata.current_schema()
    assert {field.name for field in schema.fields} == {"id", "ts", *(f"c{number}" for number in range(32))}
    assert set(schema.places) == set(range(1, 2 + 64 + 1))
    assert metadata.last_column_id == 66


async def test_servers_on_one_store_give_out_each_id_once(tmp_path: Path):
    memory = cast(Backend, KeptOpen(MemoryBackend()))
    async with SmallServers(lambda: memory, tmp_path) as servers:
        clients = [(await servers.start()).http for _ in range(2)]
        world = StoredWorld(clients[0], tmp_path)
        await world.furnish()
        table = await world.table()
        path = f"{table.replace(LAKE, OURS)}/add-columns"

        answers = await asyncio.gather(
            *(
                clients[number % 2].post(path, json={"columns": [{"name": f"c{number}", "type": "int"}]})
                for number in range(16)
            )
        )

        assert [answer.status_code for answer in answers] == [200] * 16
        metadata = (await clients[1].get(table)).json()["metadata"]
        fields = metadata["schemas"][-1]["fields"]
        assert sorted(field["id"] for field in fields) == list(range(1, 18))
        assert metadata["current-schema-id"] == 16


async def test_of_two_who_add_the_same_column_one_is_told_that_it_exists(client: httpx.AsyncClient):
    body = {"columns": [{"name": "other", "type": "int"}, NOTE]}
    answers = await asyncio.gather(
        client.post(f"{SHAPE}/add-columns", json={"columns": [NOTE]}),
        client.post(f"{SHAPE}/add-columns", json=body),
    )

    done, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (done.status_code, refused.status_code) == (200, 409)
    assert refused.json()["error"]["type"] == "AlreadyExistsException"
    assert "note" in refused.json()["error"]["message"]
    names = {each["name"] for each in (await client.get(T)).json()["metadata"]["schemas"][-1]["fields"]}
    assert ("other" in names) == (done is answers[1])


async def test_shapes_of_different_kinds_change_at_once(client: httpx.AsyncClient):
    answers = await asyncio.gather(
        client.post(f"{SHAPE}/add-columns", json={"columns": [NOTE]}),
        client.post(f"{SHAPE}/set-partitioning", json={"fields": [{"source": "id"}]}),
        client.post(f"{SHAPE}/set-sort-order", json={"fields": [{"source": "ts"}]}),
    )

    assert {answer.status_code for answer in answers} == {200}
    metadata = (await client.get(T)).json()["metadata"]
    chosen = ("current-schema-id", "default-spec-id", "default-sort-order-id")
    assert [metadata[name] for name in chosen] == [1, 1, 1]


async def test_pyiceberg_reads_the_table_that_came_of_it(client: httpx.AsyncClient):
    point = {
        "type": "struct",
        "fields": [{"name": "x", "required": True, "type": "double"}],
    }
    await client.post(f"{SHAPE}/add-columns", json={"columns": [{"name": "p", "type": point}, NOTE]})
    await client.post(f"{SHAPE}/set-partitioning", json={"fields": [{"source": "p.x"}]})
    answer = await client.post(f"{SHAPE}/set-sort-order", json={"fields": [{"source": "note"}]})

    table = TableMetadataUtil.parse_obj(answer.json()["metadata"])

    assert table.schema().find_field("p.x").field_id == 4
    assert [(one.source_id, one.field_id, one.name) for one in table.spec().fields] == [(4, 1000, "p.x")]
    assert [one.source_id for one in table.sort_order().fields] == [5]


@pytest.mark.parametrize("what", ["add-columns", "set-partitioning", "set-sort-order"])
async def test_another_table_of_the_name_is_refused(client: httpx.AsyncClient, what: str):
    body: dict[str, Any] = {"columns": [NOTE]} if what == "add-columns" else {"fields": []}
    uuid = (await client.get(T)).json()["metadata"]["table-uuid"]

    right = await client.post(f"{SHAPE}/{what}", json={**body, "table-uuid": uuid.upper()})
    wrong = await client.post(f"{SHAPE}/{what}", json={**body, "table-uuid": "0" * 32})
    missing = await client.post(f"{SHAPE}s/{what}", json=body)

    assert (right.status_code, wrong.status_code, missing.status_code) == (200, 409, 404)
    assert "UUID" in wrong.json()["error"]["message"]


DEEP = '{"type":"list","element-required":true,"element":' * 10_000 + '"int"' + "}" * 10_000


@pytest.mark.parametrize(
    ("what", "body", "field"),
    [
        ("add-columns", "{}", "columns"),
        ("add-columns", '{"columns":[]}', "columns"),
        ("add-columns", '{"columns":[{"name":"a"}]}', "columns[0]"),
        ("add-columns", '{"columns":[{"name":7,"type":"int"}]}', "columns[0].name"),
        ("add-columns", '{"columns":[{"name":"a","type":"int","nullable":true}]}', "nullable"),
        ("add-columns", '{"columns":[{"name":"a","type":"int","required":"no"}]}', "columns[0].required"),
        ("add-columns", '{"columns":[{"name":"a","type":"integer"}]}', "columns[0].type"),
        ("add-columns", '{"columns":[{"name":"a","type":"int","required":true}]}', "columns[0].required"),
        ("add-columns", '{"columns":[{"name":"a","type":"variant"}]}', "columns[0].type"),
        ("add-columns", f'{{"columns":[{{"name":"a","type":{DEEP}}}]}}', "body"),
        ("set-partitioning", "{}", "fields"),
        ("set-partitioning", '{"fields":[{}]}', "fields[0]"),
        ("set-partitioning", '{"fields":[{"source":"id","transform":"day"}]}', "fields[0].transform"),
        ("set-partitioning", '{"fields":[{"source":"id","id":4}]}', "id"),
        ("set-sort-order", '{"fields":[{"source":"x"}]}', "fields[0].source"),
        ("set-sort-order", '{"fields":[{"source":"id","direction":"up"}]}', "fields[0].direction"),
        ("set-sort-order", '{"fields":[{"source":"id","null-order":"last"}]}', "fields[0].null-order"),
    ],
)
async def test_what_cannot_be_is_refused_by_its_place_and_changes_nothing(
    client: httpx.AsyncClient, what: str, body: str, field: str
):
    before = (await client.get(T)).content

    answer = await client.post(f"{SHAPE}/{what}", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400, answer.text
    assert field in answer.json()["error"]["message"]
    assert (await client.get(T)).content == before


async def test_more_columns_than_a_table_may_have_are_refused(client: httpx.AsyncClient):
    columns = [{"name": f"c{number}", "type": "int"} for number in range(5_000)]

    answer = await client.post(f"{SHAPE}/add-columns", json={"columns": columns})

    assert answer.status_code == 400
    assert "field='columns'" in answer.json()["error"]["message"]
