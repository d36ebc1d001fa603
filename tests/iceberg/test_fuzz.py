"""Whatever arrives from the network, only errors of our own tree come out, and what is accepted is whole."""

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import CynosureError
from cynosure.iceberg.expressions import bind, describe, encode_expression, parse_expression, rewrite_not
from cynosure.iceberg.metadata import encode_metadata, parse_metadata
from cynosure.iceberg.requirements import check_requirements, decode_requirements
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.types import StructType
from cynosure.iceberg.updates import apply_updates, decode_updates
from cynosure.iceberg.views import (
    apply_view_updates,
    check_view_requirements,
    decode_view_requirements,
    decode_view_updates,
    encode_view,
    new_view,
    parse_view,
    read_version,
)
from tests.iceberg.samples import NOW_MS, add, new_table, set_ref, snapshot, update, with_history
from tests.iceberg.views.samples import OTHER, SCHEMA, VIEW, make_version

SPEC = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "d", "transform": "day"}]}
ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
KEY = {"key-id": "k", "encrypted-key-metadata": "AA==", "encrypted-by-id": "m", "properties": {"a": "b"}}


def statistics(snapshot_id: int) -> dict[str, Any]:
    blob = {"type": "t", "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [1], "properties": {}}
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": "s3://b/s.puffin",
        "file-size-in-bytes": 5,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [blob],
    }


def partition_statistics(snapshot_id: int) -> dict[str, Any]:
    return {"snapshot-id": snapshot_id, "statistics-path": "s3://b/p.parquet", "file-size-in-bytes": 5}


TABLE = with_history(3, partition_spec=SPEC, properties={"format-version": "3"})
TABLES = [
    update(
        with_history(2, partition_spec=SPEC, sort_order=ORDER, properties={"format-version": str(version)}),
        set_ref("tag", 1, "tag", max_ref_age_ms=5),
        {"action": "set-statistics", "statistics": statistics(1)},
        {"action": "set-partition-statistics", "partition-statistics": partition_statistics(1)},
    )
    for version in (1, 2, 3)
]
TABLE_DOCUMENTS = [msgspec.json.decode(encode_metadata(table)) for table in TABLES]

# One of each action; each can be applied to TABLE alone.
TABLE_UPDATES: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": TABLE.table_uuid},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "set-location", "location": "s3://b/elsewhere"},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "remove-properties", "removals": ["a"]},
    {"action": "add-encryption-key", "encryption-key": KEY},
    {"action": "remove-encryption-key", "key-id": "k"},
    {
        "action": "add-schema",
        "schema": {
            "type": "struct",
            "schema-id": 1,
            "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "long"},
                {"id": 2, "name": "at", "required": False, "type": "timestamptz"},
                {
                    "id": 4,
                    "name": "deep",
                    "required": False,
                    "type": {
                        "type": "map",
                        "key-id": 5,
                        "key": "string",
                        "value-id": 6,
                        "value-required": False,
                        "value": {
                            "type": "list",
                            "element-id": 7,
                            "element-required": True,
                            "element": {
                                "type": "struct",
                                "fields": [
                                    {
                                        "id": 8,
                                        "name": "x",
                                        "required": False,
                                        "type": "decimal(9, 2)",
                                        "doc": "d",
                                    }
                                ],
                            },
                        },
                    },
                },
            ],
        },
        "last-column-id": 8,
    },
    {"action": "set-current-schema", "schema-id": 0},
    {"action": "remove-schemas", "schema-ids": []},
    {
        "action": "add-spec",
        "spec": {"spec-id": 1, "fields": [{"source-id": 3, "name": "n", "transform": "bucket[16]"}]},
    },
    {"action": "set-default-spec", "spec-id": 0},
    {"action": "remove-partition-specs", "spec-ids": []},
    {"action": "add-sort-order", "sort-order": ORDER},
    {"action": "set-default-sort-order", "sort-order-id": 0},
    add(snapshot(TABLE, 4)),
    set_ref("branch", 2, "branch", min_snapshots_to_keep=1, max_snapshot_age_ms=5),
    {"action": "remove-snapshot-ref", "ref-name": "branch"},
    {"action": "remove-snapshots", "snapshot-ids": [1]},
    {"action": "set-statistics", "statistics": statistics(2), "snapshot-id": 2},
    {"action": "remove-statistics", "snapshot-id": 2},
    {"action": "set-partition-statistics", "partition-statistics": partition_statistics(2)},
    {"action": "remove-partition-statistics", "snapshot-id": 2},
]
TABLE_CREATION: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": TABLE.table_uuid},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": TABLE_UPDATES[7]["schema"]},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": SPEC},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": ORDER},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://b/t"},
    {"action": "set-properties", "updates": {"a": "b"}},
]
TABLE_REQUIREMENTS: list[dict[str, Any]] = [
    {"type": "assert-table-uuid", "uuid": TABLE.table_uuid},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]

BASE_VIEW = new_view(
    view_uuid=VIEW["view-uuid"],
    location="s3://b/v",
    schema=read_schema(msgspec.json.encode(SCHEMA)),
    version=read_version(msgspec.json.encode(make_version(1))),
    properties={},
    now_ms=NOW_MS,
)
VIEW_UPDATES: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": VIEW["view-uuid"]},
    {"action": "upgrade-format-version", "format-version": 1},
    {"action": "add-schema", "schema": OTHER, "last-column-id": 1},
    {"action": "set-location", "location": "s3://b/w"},
    {"action": "set-properties", "updates": {"a": "b", "version.history.num-entries": "2"}},
    {"action": "remove-properties", "removals": ["a"]},
    {"action": "add-view-version", "view-version": make_version(2)},
    {"action": "set-current-view-version", "view-version-id": 1},
]
VIEW_CREATION: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": VIEW["view-uuid"]},
    {"action": "set-location", "location": "s3://b/w"},
    {"action": "add-schema", "schema": OTHER},
    {"action": "add-view-version", "view-version": make_version(1, **{"schema-id": -1})},
    {"action": "set-current-view-version", "view-version-id": -1},
]

COLUMNS = StructType(TABLE.current_schema().fields)
FILTERS: list[Any] = [
    {"type": "eq", "term": "id", "value": 5},
    {
        "type": "and",
        "left": {"type": "in", "term": "name", "values": ["a", "b"]},
        "right": {
            "type": "not",
            "child": {
                "type": "lt",
                "left": {
                    "type": "apply",
                    "function": "bucket",
                    "arguments": [4, {"type": "reference", "id": 1}],
                },
                "right": {"type": "literal", "value": 3, "data-type": "int"},
            },
        },
    },
    {
        "type": "or",
        "left": {"type": "starts-with", "term": {"type": "reference", "term": "name"}, "value": "x"},
        "right": {
            "type": "gt-eq",
            "term": {"type": "transform", "transform": "day", "term": "at"},
            "value": "2024-01-01",
        },
    },
]


# What to do with bytes from the network. Each asserts that what is accepted is whole.


def take_metadata(json: bytes) -> None:
    table = parse_metadata(json)
    assert parse_metadata(encode_metadata(table)) == table


def take_table_updates(json: bytes) -> None:
    table = apply_updates(TABLE, decode_updates(json), now_ms=NOW_MS + 5_000)
    assert parse_metadata(encode_metadata(table)) == table


def take_table_creation(json: bytes) -> None:
    table = apply_updates(None, decode_updates(json), now_ms=NOW_MS)
    assert parse_metadata(encode_metadata(table)) == table


def take_requirements(json: bytes) -> None:
    check_requirements(TABLE, decode_requirements(json))


def take_view(json: bytes) -> None:
    view = parse_view(json)
    assert parse_view(encode_view(view)) == view


def take_view_updates(json: bytes) -> None:
    view = apply_view_updates(BASE_VIEW, decode_view_updates(json), now_ms=NOW_MS)
    assert parse_view(encode_view(view)) == view


def take_view_creation(json: bytes) -> None:
    view = apply_view_updates(None, decode_view_updates(json), now_ms=NOW_MS)
    assert parse_view(encode_view(view)) == view


def take_view_requirements(json: bytes) -> None:
    check_view_requirements(BASE_VIEW, decode_view_requirements(json))


def take_filter(json: bytes) -> None:
    expression = parse_expression(json)
    assert parse_expression(encode_expression(expression)) == expression
    describe(expression)
    rewrite_not(bind(expression, COLUMNS, is_case_sensitive=False))


Take = Callable[[bytes], None]

GATES: dict[str, tuple[Take, list[Any]]] = {
    "table": (take_metadata, TABLE_DOCUMENTS),
    "table-updates": (take_table_updates, [[one] for one in TABLE_UPDATES]),
    "table-creation": (take_table_creation, [TABLE_CREATION]),
    "requirements": (take_requirements, [[one] for one in TABLE_REQUIREMENTS]),
    "view": (take_view, [VIEW]),
    "view-updates": (take_view_updates, [VIEW_UPDATES, *[[one] for one in VIEW_UPDATES]]),
    "view-creation": (take_view_creation, [VIEW_CREATION]),
    "view-requirements": (
        take_view_requirements,
        [[{"type": "assert-view-uuid", "uuid": VIEW["view-uuid"]}]],
    ),
    "filter": (take_filter, FILTERS),
}


def nest(depth: int, json: Any = 1) -> Any:
    for _ in range(depth):
        json = [json]
    return json


NASTY: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**63 - 1,
        2**63,
        -(2**63) - 1,
        2**64,
        10**30,
    ),
    *(
        0.5,
        -0.0,
        1e308,
        "",
        "a",
        "0",
        "-1",
        "\x00",
        "\x1f",
        "é",
        "𝄞",
        "main",
        "x" * 3_000,
        "../..",
        "1" * 400,
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"type": "struct", "fields": []},
        {"action": "assign-uuid"},
        nest(60),
    ),
]
any_json = st.recursive(
    st.sampled_from(NASTY)
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
    # Copied, because mutation goes on inside what was inserted.
).map(copy.deepcopy)


WORDS = [
    *(
        "int",
        "long",
        "string",
        "decimal(9, 2)",
        "decimal(12, 2)",
        "timestamp_ns",
        "variant",
        "geometry(a)",
        "date",
    ),
    *(
        "identity",
        "void",
        "bucket[4]",
        "truncate[2]",
        "year",
        "hour",
        "zorder",
        "asc",
        "nulls-last",
        "sql",
        "spark",
    ),
    *(
        "branch",
        "tag",
        "main",
        "id",
        "at",
        "name",
        "k",
        "in",
        "eq",
        "not",
        "is-nan",
        "literal",
        "reference",
        "apply",
    ),
    *("2024-01-01", "", "00", "0", "-1", "true"),
]


@st.composite
def mutated(draw: st.DrawFn, documents: list[Any]) -> Any:
    """A valid document with a few parts replaced, removed, repeated or put into others' places."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["tweak", "tweak", "tweak", "tweak", "replace", "remove", "add", "copy"]))
        parent, key, part = None, None, document
        while isinstance(part, dict | list) and part and (how == "tweak" or draw(st.integers(0, 4))):
            parent = part
            key = draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
            part = parent[key]
        if parent is None or (how == "tweak" and key in ("action", "type") and draw(st.integers(0, 7))):
            continue  # Most such changes end at the first look.
        match how:
            case "tweak":
                parent[key] = draw(alike(part))
            case "replace":
                parent[key] = draw(any_json)
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, dict):
                parent[draw(st.sampled_from(["type", "id", "schema-id", "doc", "x"]))] = draw(any_json)
            case _ if isinstance(parent, list):
                parent.append(copy.deepcopy(part))
            case _:
                parent[key] = [part]
    return document


def alike(part: Any) -> st.SearchStrategy:
    """Another value of the same kind, so that it gets past decoding and meets the rules."""
    if isinstance(part, bool):
        return st.just(not part)
    if isinstance(part, int):
        return st.sampled_from([0, 1, 2, 3, 4, 1000, 1001, -1, part + 1, part - 1, 2**31 - 1, 2**63 - 1])
    return st.sampled_from(WORDS) if isinstance(part, str) else any_json


@st.composite
def damaged(draw: st.DrawFn, documents: list[Any]) -> bytes:
    """The bytes of a valid document, cut, flipped or with something in between."""
    json = bytearray(msgspec.json.encode(draw(st.sampled_from(documents))))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(json) - 1, 0)))
        match draw(st.sampled_from(["flip", "insert", "cut", "repeat"])):
            case "flip" if json:
                json[at] = draw(st.integers(0, 255))
            case "insert":
                json[at:at] = draw(
                    st.sampled_from([b"\xff", b"{", b"[", b'"', b",", b"\\", b"1e9", b"null", b" "])
                )
            case "cut":
                del json[at : at + draw(st.integers(1, 40))]
            case _:
                json[at:at] = json[at : at + draw(st.integers(1, 40))]
    return bytes(json)


@pytest.mark.parametrize("gate", GATES)
def test_the_documents_that_the_fuzzers_start_from_are_accepted(gate: str) -> None:
    take, documents = GATES[gate]
    for document in documents:
        take(msgspec.json.encode(document))


@pytest.mark.parametrize("gate", GATES)
@given(json=st.binary(max_size=100) | any_json.map(msgspec.json.encode))
def test_random_input_is_refused_with_our_own_errors(gate: str, json: bytes) -> None:
    with suppress(CynosureError):
        GATES[gate][0](json)


@pytest.mark.parametrize("gate", GATES)
@given(data=st.data())
def test_mutated_documents_are_refused_with_our_own_errors_or_accepted_whole(
    gate: str, data: st.DataObject
) -> None:
    take, documents = GATES[gate]
    json = data.draw(mutated(documents).map(msgspec.json.encode) | damaged(documents))

    with suppress(CynosureError):
        take(json)


@given(st.lists(st.lists(mutated([[one] for one in TABLE_UPDATES]) | st.just([]), max_size=3), max_size=5))
def test_a_table_survives_any_sequence_of_mutated_updates(requests: list[list[Any]]) -> None:
    table = TABLE
    for request in requests:
        updates = [one for part in request if isinstance(part, list) for one in part]
        with suppress(CynosureError):
            table = apply_updates(
                table, decode_updates(msgspec.json.encode(updates)), now_ms=table.last_updated_ms + 1
            )
        assert parse_metadata(encode_metadata(table)) == table


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("depth", [90, 190, 390, 490, 700, 900, 960, 990, 5_000, 200_000])
def test_nesting_of_any_depth_is_refused_or_accepted_never_fatal(gate: str, depth: int) -> None:
    take, documents = GATES[gate]
    first = msgspec.json.encode(documents[0])
    deep = b"[" * depth + b"1" + b"]" * depth
    extra = b'"zzz":' + deep
    inside = [
        deep,
        b"[" * depth,
        b'{"zzz":' * depth,
        first.replace(b"{", b"{" + extra + b",", 1),
        first[::-1].replace(b"}", (b"," + extra + b"}")[::-1], 1)[::-1],
    ]
    # Deep documents are read at any depth of our own stack.
    for frames in (0, 150):
        for json in inside:
            with suppress(CynosureError):
                call_deeper(frames, take, json)


def call_deeper(frames: int, take: Take, json: bytes) -> None:
    if frames:
        call_deeper(frames - 1, take, json)
    else:
        take(json)


def test_absurd_sizes_are_refused_before_they_are_built() -> None:
    wide = {
        "type": "struct",
        "fields": [{"id": id_, "name": f"c{id_}", "required": False, "type": "int"} for id_ in range(10_001)],
    }
    document = copy.deepcopy(TABLE_DOCUMENTS[1])
    document["schemas"] = [{**wide, "schema-id": 0}]
    crowded = copy.deepcopy(TABLE_DOCUMENTS[1])
    crowded["snapshots"] = [{**crowded["snapshots"][0], "snapshot-id": id_} for id_ in range(100_000)]

    for take, json in (
        (parse_metadata, msgspec.json.encode(document)),
        (parse_metadata, msgspec.json.encode(crowded)),
        (lambda json: new_table(properties={"p": json.decode()}), b"x" * 5_000_000),
        (
            lambda json: apply_view_updates(BASE_VIEW, decode_view_updates(json), now_ms=0),
            msgspec.json.encode([{"action": "add-schema", "schema": wide}]),
        ),
        (
            lambda json: apply_view_updates(BASE_VIEW, decode_view_updates(json), now_ms=0),
            msgspec.json.encode([{"action": "set-properties", "updates": {"p": "x" * 5_000_000}}]),
        ),
    ):
        with pytest.raises(CynosureError) as refusal:
            take(json)
        assert len(str(refusal.value)) < 2_000
