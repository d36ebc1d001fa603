"""Absurd, broken and hostile input: a 4xx that names the field, and nothing is written."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cynosure.catalog.directory import Directory
from cynosure.persistence.references import DEFAULT_REALM

pytestmark = pytest.mark.anyio

Schema = dict[str, object]
JSON = {"content-type": "application/json"}


@pytest.fixture
async def tables(client: httpx.AsyncClient, schema: Schema) -> httpx.AsyncClient:
    (await client.post("namespaces", json={"namespace": ["a"]})).raise_for_status()
    (await client.post("namespaces/a/tables", json={"name": "t", "schema": schema})).raise_for_status()
    return client


@pytest.fixture
async def unchanged(directory: Directory, tmp_path: Path) -> AsyncIterator[None]:
    """Fails when the test changed the catalog or left a file."""
    catalog = await directory.open(DEFAULT_REALM, "lake")
    yield
    assert (await catalog.read()).commit.record.sequence == 2
    await catalog.shared.background.close()
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 1


def columns(count: int) -> Schema:
    fields = [
        {"id": number, "name": f"c{number}", "required": False, "type": "long"}
        for number in range(1, count + 1)
    ]
    return {"type": "struct", "schema-id": 1, "fields": fields}


def error_of(answer: httpx.Response) -> str:
    assert answer.status_code == 400, answer.text[:300]
    error = answer.json()["error"]
    assert error["code"] == 400
    return error["message"]


async def commit(tables: httpx.AsyncClient, *updates: dict) -> httpx.Response:
    return await tables.post("namespaces/a/tables/t", json={"requirements": [], "updates": list(updates)})


@pytest.mark.usefixtures("unchanged")
async def test_a_table_of_ten_thousand_columns_is_refused(tables: httpx.AsyncClient):
    answer = await tables.post("namespaces/a/tables", json={"name": "wide", "schema": columns(10_000)})
    assert "schema.fields" in error_of(answer)
    update = {"action": "add-schema", "schema": columns(10_000), "last-column-id": 10_000}
    assert "updates[0].schema.fields" in error_of(await commit(tables, update))


@pytest.mark.usefixtures("unchanged")
async def test_a_property_of_five_megabytes_is_refused(tables: httpx.AsyncClient, schema: Schema):
    huge = {"k": "x" * 5_000_000}
    created = await tables.post(
        "namespaces/a/tables", json={"name": "big", "schema": schema, "properties": huge}
    )
    assert "properties" in error_of(created)
    changed = await commit(tables, {"action": "set-properties", "updates": huge})
    assert "updates[0]" in error_of(changed)
    namespace = await tables.post("namespaces", json={"namespace": ["b"], "properties": huge})
    assert "properties" in error_of(namespace)


async def test_a_hundred_thousand_snapshots_are_refused(tables: httpx.AsyncClient, tmp_path: Path):
    loaded = (await tables.get("namespaces/a/tables/t")).json()
    metadata = loaded["metadata"]
    metadata["snapshots"] = [
        {"snapshot-id": number, "sequence-number": number, "timestamp-ms": 1, "manifest-list": "file:///x"}
        for number in range(1, 100_001)
    ]
    metadata["last-sequence-number"] = 100_000
    path = Path(metadata["location"].removeprefix("file://")) / "many.metadata.json"
    path.write_bytes(msgspec.json.encode(metadata))
    await tables.delete("namespaces/a/tables/t")
    answer = await tables.post(
        "namespaces/a/register", json={"name": "many", "metadata-location": f"file://{path}"}
    )
    assert "snapshots" in error_of(answer)


async def test_a_body_above_the_limit_is_refused_before_it_is_read(tables: httpx.AsyncClient):
    body = b'{"updates": [' + b" " * 11_000_000 + b"]}"
    answer = await tables.post("namespaces/a/tables/t", content=body, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "\xff"}}]}',
        b'{"requirements": [], "updates": [{"action": "fly-to-the-moon"}]}',
        b'{"requirements": [], "updates": [{}]}',
        b'{"requirements": [], "updates": [null]}',
        b'{"requirements": [], "updates": {}}',
        b'{"requirements": [{"type": "assert-nothing"}], "updates": []}',
        b'{"requirements": [], "updates": [{"action": "set-location", "location": 7}]}',
        b'{"requirements": [], "updates": [{"action": "set-location", "location": "file:///a/../../etc"}]}',
        b'{"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 99}]}',
        b'{"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": ["x"]}]}',
        b'{"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": {"snapshot-id": 1e400}}]}',
        b'{"updates": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
async def test_a_broken_commit_is_refused(tables: httpx.AsyncClient, body: bytes):
    error_of(await tables.post("namespaces/a/tables/t", content=body, headers=JSON))


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "{base}/../other",
        "{base}/%2e%2e/other",
        "{base}//x",
        "{base}/a\\b",
        "{base}/x?y",
        "{base}/\u2028",
        "ftp://host/x",
        "s3://other-bucket/x",
        "relative/path",
    ],
)
async def test_tricks_in_locations_are_refused(
    tables: httpx.AsyncClient, schema: Schema, tmp_path: Path, location: str
):
    wanted = location.format(base=f"file://{tmp_path}/lake")
    body = {"name": "trick", "schema": schema, "location": wanted}
    answer = await tables.post("namespaces/a/tables", json=body)
    assert answer.status_code in (400, 403), answer.text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["%00", "%1F", "%0A", "a%1Fb", "%7F", "%C2%85", "%FF", "%2E%2E", "%2E"])
async def test_control_characters_and_dots_in_names_are_refused(tables: httpx.AsyncClient, name: str):
    answer = await tables.get(f"namespaces/a/tables/{name}")
    error_of(answer)


value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ACTIONS = [
    "assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec",
    "set-default-spec", "add-sort-order", "set-default-sort-order", "add-snapshot", "set-snapshot-ref",
    "remove-snapshots", "remove-snapshot-ref", "set-location", "set-properties", "remove-properties",
    "set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics",
    "remove-partition-specs", "remove-schemas", "add-encryption-key", "remove-encryption-key",
]  # fmt: skip
FIELDS = [
    "uuid", "format-version", "schema", "schema-id", "schema-ids", "spec", "spec-id", "spec-ids",
    "sort-order", "sort-order-id", "snapshot", "snapshot-id", "snapshot-ids", "ref-name", "type",
    "location", "updates", "removals", "statistics", "partition-statistics", "encryption-key", "key-id",
    "last-column-id",
]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    updates=st.lists(
        st.fixed_dictionaries({"action": st.sampled_from(ACTIONS)}, optional=dict.fromkeys(FIELDS, value)),
        min_size=1,
        max_size=3,
    )
)
async def test_random_updates_are_applied_or_refused_and_never_break_the_server(
    tables: httpx.AsyncClient, updates: list[dict]
):
    body = json.dumps({"requirements": [], "updates": updates})
    answer = await tables.post("namespaces/a/tables/t", content=body, headers=JSON)
    assert answer.status_code in (200, 400, 403, 409), answer.text
    assert (await tables.get("namespaces/a/tables/t")).status_code == 200
