"""Right bodies made wrong in one place or several are never answered with a 5xx."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BASE = "/api/catalog/v1/lake"
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {
            "id": 2,
            "name": "tags",
            "required": False,
            "type": {"type": "list", "element-id": 3, "element": "string", "element-required": True},
        },
    ],
}
SOMEWHERE = "file:///somewhere"
"""In place of where the catalog's files are, which only the test knows."""
SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": 1,
    "timestamp-ms": 1_900_000_000_000,
    "manifest-list": f"{SOMEWHERE}/snap.avro",
    "summary": {"operation": "append"},
    "schema-id": 0,
}
UPDATES: list[dict[str, Any]] = [
    {"action": "set-properties", "updates": {"k": "v"}},
    {"action": "add-schema", "schema": SCHEMA, "last-column-id": 3},
    {
        "action": "add-spec",
        "spec": {"spec-id": 1, "fields": [{"name": "i", "source-id": 1, "transform": "bucket[4]"}]},
    },
    {
        "action": "add-sort-order",
        "sort-order": {
            "order-id": 1,
            "fields": [
                {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
            ],
        },
    },
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    {"action": "upgrade-format-version", "format-version": 3},
    {
        "action": "set-statistics",
        "statistics": {
            "snapshot-id": 7,
            "statistics-path": f"{SOMEWHERE}/stats.puffin",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        },
    },
]
REQUIREMENTS = [
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
]
COMMIT = {"requirements": REQUIREMENTS, "updates": UPDATES}
TABLE = {"namespace": ["a"], "name": "t"}
VERSION = {
    "version-id": 2,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 2", "dialect": "spark"}],
    "default-namespace": [],
}
BODIES: dict[str, Any] = {
    "namespaces": {"namespace": ["x"], "properties": {"k": "v"}},
    "namespaces/a/properties": {"removals": ["x"], "updates": {"k": "v"}},
    "namespaces/a/tables": {
        "name": "new",
        "schema": SCHEMA,
        "partition-spec": {
            "spec-id": 0,
            "fields": [{"name": "d", "source-id": 1, "transform": "truncate[9]"}],
        },
        "write-order": {
            "order-id": 1,
            "fields": [
                {"source-id": 1, "transform": "identity", "direction": "desc", "null-order": "nulls-last"}
            ],
        },
        "properties": {"format-version": "2"},
    },
    "namespaces/a/tables/t": COMMIT,
    "transactions/commit": {"table-changes": [{"identifier": TABLE, **COMMIT}]},
    "tables/rename": {"source": TABLE, "destination": {"namespace": ["a"], "name": "moved"}},
    "namespaces/a/register": {"name": "r", "metadata-location": f"{SOMEWHERE}/x.metadata.json"},
    "namespaces/a/views": {"name": "w", "schema": SCHEMA, "view-version": VERSION, "properties": {}},
    "namespaces/a/views/v": {
        "requirements": [],
        "updates": [
            {"action": "add-schema", "schema": SCHEMA},
            {"action": "add-view-version", "view-version": VERSION},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    },
    "namespaces/a/tables/t/metrics": {"report-type": "scan-report", "snapshot-id": 1, "metrics": {}},
}
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**31,
        2**63,
        2**70,
        1e400,
        0.5,
        "",
        "x" * 5_000,
        "\x00",
        "..",
        "a/b",
        [],
        {},
        [[]],
        {"": None},
    ]
) | st.text(max_size=8)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, child in inner for place in places(child, (*path, key))]


def spoil(value: Any, path: tuple[Any, ...], data: st.DataObject) -> Any:
    """A copy with one place removed, replaced or doubled."""
    copy = json.loads(json.dumps(value))
    *above, last = path
    holder = copy
    for key in above:
        holder = holder[key]
    match data.draw(st.sampled_from(["remove", "replace", "double"])):
        case "remove":
            del holder[last]
        case "replace":
            holder[last] = data.draw(ODD)
        case "double" if isinstance(holder, list):
            holder.insert(last, holder[last])
        case "double":
            holder[f"{last}-2"] = holder[last]
    return copy


def body_for(server: Any, path: str) -> Any:
    return json.loads(json.dumps(BODIES[path]).replace(SOMEWHERE, server.base))


def send(server: Any, path: str, body: bytes) -> None:
    response = server.send(
        "POST", f"{BASE}/{path}", content=body, headers={"content-type": "application/json"}
    )

    assert response.status_code < 500, (path, body, response.text)
    if response.status_code >= 400:
        assert response.json()["error"]["code"] == response.status_code
    elif response.status_code in (200, 204):
        server.furnish()


@pytest.mark.parametrize("path", [path for path in BODIES if not path.endswith("/register")])
def test_the_bodies_are_right_to_begin_with(server: Any, path: str) -> None:
    server.furnish()

    response = server.send("POST", f"{BASE}/{path}", json=body_for(server, path))

    assert response.is_success, response.text


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", BODIES)
def test_a_body_with_a_wrong_place_is_no_server_error(server: Any, path: str) -> None:
    server.furnish()

    @settings(max_examples=40)
    @given(data=st.data())
    def try_one(data: st.DataObject) -> None:
        body = body_for(server, path)
        for _ in range(data.draw(st.integers(1, 2))):
            if found := places(body):
                body = spoil(body, data.draw(st.sampled_from(found)), data)
        send(server, path, json.dumps(body).encode())

    try_one()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", BODIES)
def test_damaged_bytes_are_no_server_error(server: Any, path: str) -> None:
    server.furnish()
    whole = json.dumps(body_for(server, path)).encode()

    @settings(max_examples=15)
    @given(at=st.integers(0, len(whole)), length=st.integers(0, 9), patch=st.binary(max_size=6))
    def try_one(at: int, length: int, patch: bytes) -> None:
        send(server, path, whole[:at] + patch + whole[at + length :])

    try_one()
