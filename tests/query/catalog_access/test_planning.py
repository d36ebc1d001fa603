"""Pages of a plan: every file with its deletes, or an error."""

from typing import Any

import msgspec
import pytest

from cynosure.iceberg.schema import decode_schema
from cynosure.query.catalog_access.planning import PlanReader, read_credentials
from cynosure.query.catalog_access.wire import PlanPage, StorageCredential
from cynosure.query.errors import NotReadable
from cynosure.storage.errors import StorageRefused

SCHEMA = decode_schema(
    msgspec.json.encode(
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "id", "type": "long", "required": True},
                {"id": 2, "name": "region", "type": "string", "required": False},
                {"id": 3, "name": "day", "type": "date", "required": False},
            ],
        }
    )
)
METADATA = {
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {
            "spec-id": 1,
            "fields": [
                {"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000},
                {"name": "day_month", "transform": "month", "source-id": 3, "field-id": 1001},
            ],
        },
    ]
}


def file(name: str, content: str = "data", **more: Any) -> dict[str, Any]:
    return {
        "content": content,
        "file-path": f"s3://b/t/{name}",
        "file-format": "PARQUET",
        "file-size-in-bytes": 10,
        "record-count": 2,
        "spec-id": 0,
        "partition": [],
        **more,
    }


def read(*pages: dict[str, Any]) -> PlanReader:
    reader = PlanReader(SCHEMA, METADATA)
    for page in pages:
        reader.add(msgspec.json.decode(msgspec.json.encode(page), type=PlanPage))
    return reader


VECTOR = file(
    "dv.puffin",
    "position-deletes",
    **{"file-format": "puffin", "content-offset": 4, "content-size-in-bytes": 40},
)
POSITIONS = file("p", "position-deletes")
EQUALITY = file("e", "equality-deletes", **{"equality-ids": [1, 2]})


def test_deletes_are_known_by_kind_and_each_is_there_once():
    reader = read(
        {
            "file-scan-tasks": [
                {"data-file": file("a"), "delete-file-references": [0, 1]},
                {"data-file": file("b"), "delete-file-references": [1, 2]},
            ],
            "delete-files": [VECTOR, POSITIONS, EQUALITY],
        },
        # Another page numbers its deletes anew.
        {
            "file-scan-tasks": [
                {"data-file": file("c"), "delete-file-references": [0]},
                {"data-file": file("d")},
            ],
            "delete-files": [EQUALITY],
        },
    )
    assert [each.kind for each in reader.deletes] == ["vector", "position", "equality"]
    vector, _, equality = reader.deletes
    assert (vector.offset, vector.length, vector.format) == (4, 40, "puffin")
    assert equality.equality_ids == (1, 2)
    assert [each.deletes for each in reader.files] == [(0, 1), (1, 2), (2,), ()]


def test_two_vectors_in_one_file_are_two():
    other = {**VECTOR, "content-offset": 44}
    reader = read(
        {
            "file-scan-tasks": [{"data-file": file("a"), "delete-file-references": [0, 1]}],
            "delete-files": [VECTOR, other],
        }
    )
    assert [each.offset for each in reader.deletes] == [4, 44]


def test_identity_partitions_are_constants_and_offsets_are_kept():
    data = file("a", **{"spec-id": 1, "partition": ["EU", 600], "split-offsets": [4, 8]})
    reader = read({"file-scan-tasks": [{"data-file": data}]})
    assert reader.files[0].constants == {2: "EU"}
    assert reader.files[0].format == "parquet"
    assert reader.offsets == [(4, 8)]


@pytest.mark.parametrize(
    ("residual", "found"),
    [
        (True, b"true"),
        (
            {"type": "eq", "term": "region", "value": "EU"},
            b'{"type":"eq","left":{"type":"reference","id":2},"right":{"type":"literal","value":"EU","data-type":"string"}}',
        ),
        (
            {"type": "lt", "left": {"type": "reference", "id": 3}, "right": "2026-01-31"},
            b'{"type":"lt","left":{"type":"reference","id":3},'
            b'"right":{"type":"literal","value":"2026-01-31","data-type":"date"}}',
        ),
        # It only saves work: what is not understood skips nothing.
        ({"type": "surprise"}, b"true"),
        (
            {"type": "eq", "term": {"type": "transform", "transform": "month", "term": "day"}, "value": 3},
            b"true",
        ),
    ],
)
def test_residuals_are_by_id_and_exact(residual: Any, found: bytes):
    reader = read({"file-scan-tasks": [{"data-file": file("a"), "residual-filter": residual}]})
    assert reader.files[0].residual == found


@pytest.mark.parametrize(
    "page",
    [
        {"file-scan-tasks": [{"data-file": file("a", "position-deletes")}]},
        {"file-scan-tasks": [{"data-file": file("a", **{"key-metadata": "00"})}]},
        {"file-scan-tasks": [{"data-file": file("a"), "delete-file-references": [0]}]},
        {"file-scan-tasks": [{"data-file": file("a", **{"spec-id": 7})}]},
        {"file-scan-tasks": [{"data-file": file("a", **{"spec-id": 1})}]},
        {"delete-files": [file("a")]},
        {"delete-files": [file("a", "equality-deletes")]},
        {"delete-files": [file("a", "position-deletes", **{"key-metadata": "00"})]},
        {"delete-files": [{**VECTOR, "content-offset": None}]},
        {"delete-files": [file("a", "surprise")]},
    ],
)
def test_what_is_not_understood_is_not_left_out(page: dict[str, Any]):
    with pytest.raises(NotReadable) as raised:
        read(page)
    assert "s3:" not in str(raised.value)
    assert raised.value.fix


def test_credentials_are_there_or_it_is_said_what_to_do():
    given = [
        StorageCredential("s3://b/t", {"s3.access-key-id": "k", "s3.session-token-expires-at-ms": "77"}),
        StorageCredential("s3://b/other", {}),
    ]
    credentials, places = read_credentials(given, "s3", 3, name="t")
    assert (credentials.number, credentials.expires_ms, places) == (3, 77, ("s3://b/t", "s3://b/other"))
    assert "k" not in repr(credentials)
    for nothing in ([], [StorageCredential("s3://b/t", {"s3.signer.endpoint": "x"})]):
        with pytest.raises(StorageRefused, match="gives no credentials"):
            read_credentials(nothing, "s3", 1, name="t")
    assert read_credentials([], "file", 1, name="t")[0].properties == {}
