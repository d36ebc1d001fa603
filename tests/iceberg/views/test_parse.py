"""Reading and writing view metadata."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyiceberg.view.metadata import ViewMetadata as TheirMetadata

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.views import encode_view, parse_view


def test_a_view_is_written_as_it_was_read(document: dict[str, Any]) -> None:
    written = encode_view(parse_view(msgspec.json.encode(document)))

    assert msgspec.json.decode(written) == document
    assert encode_view(parse_view(written)) == written


def test_fields_of_newer_writers_survive_at_every_depth(document: dict[str, Any]) -> None:
    document["max-staleness"] = {"ms": 5, "π": [None]}
    document["versions"][0]["storage"] = {"table": ["a"]}
    document["versions"][0]["representations"].append({"type": "plan", "substrait": "AA=="})
    document["versions"][0]["representations"][0]["hints"] = [1]
    document["schemas"][0]["fields"][0]["mask"] = "sha"
    document["version-log"][0]["by"] = "me"

    view = parse_view(msgspec.json.encode(document))

    assert msgspec.json.decode(encode_view(view)) == document
    assert view.current_version().dialects == {"spark"}
    assert view.current_schema().fields[0].name == "x"


def test_pyiceberg_reads_what_is_written(document: dict[str, Any]) -> None:
    theirs = TheirMetadata.model_validate_json(encode_view(parse_view(msgspec.json.encode(document))))

    assert theirs.current_version_id == 2
    assert [one.version_id for one in theirs.versions] == [1, 2]
    assert parse_view(theirs.model_dump_json(by_alias=True, exclude_none=True).encode()).view_uuid == str(
        theirs.view_uuid
    )


def test_properties_may_be_missing_and_a_schema_without_id_has_id_0(document: dict[str, Any]) -> None:
    del document["properties"], document["schemas"][0]["schema-id"]

    view = parse_view(msgspec.json.encode(document))

    assert view.properties == {}
    assert msgspec.json.decode(encode_view(view))["schemas"][0]["schema-id"] == 0


REPRESENTATION = "versions.1.representations"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("view-uuid", [], "view-uuid"),
        ("view-uuid", [5], "view-uuid"),
        ("view-uuid", [None], "view-uuid"),
        ("format-version", [], "format-version"),
        ("format-version", [2], "format-version"),
        ("format-version", ["1"], "format-version"),
        ("location", [], "location"),
        ("location", [""], "location"),
        ("current-version-id", [], "current-version-id"),
        ("current-version-id", [1234], "current-version-id"),
        ("current-version-id", [2**31], "current-version-id"),
        ("versions", [], "versions"),
        ("versions", [{}], "versions"),
        ("versions", [[]], "current-version-id"),
        ("versions.0", [5], "versions[0]"),
        ("versions.0.version-id", [2], "versions[1].version-id"),
        ("versions.0.timestamp-ms", ["x"], "versions[0].timestamp-ms"),
        ("versions.0.summary", [{"a": 1}], "versions[0].summary"),
        ("versions.1.schema-id", [7], "versions[1].schema-id"),
        (REPRESENTATION, [[]], "versions[1].representations"),
        (
            f"{REPRESENTATION}.0",
            [{"type": "sql", "sql": "select 1"}],
            "versions[1].representations[0].dialect",
        ),
        (f"{REPRESENTATION}.0", [{"type": "SQL", "dialect": "spark"}], "versions[1].representations[0].sql"),
        (
            REPRESENTATION,
            [
                [
                    {"type": "sql", "sql": "select 1", "dialect": "spark"},
                    {"type": "sql", "sql": "select 2", "dialect": "SPARK"},
                ]
            ],
            "versions[1].representations[1].dialect",
        ),
        ("version-log", [], "version-log"),
        ("version-log.0", [{}], "version-log[0]"),
        ("version-log.1.version-id", [None], "version-log[1].version-id"),
        ("schemas", [], "schemas"),
        ("schemas.0.type", ["list"], "schemas[0].type"),
        ("schemas.0.fields.0.type", ["integer"], "schemas[0].fields[0].type"),
        ("properties", [{"a": None}], "properties"),
        ("properties", [[]], "properties"),
    ],
)
def test_a_damaged_view_is_refused_naming_the_field(
    change: Callable[..., bytes], path: str, value: list[Any], field: str
) -> None:
    json = change(path, *value)

    with pytest.raises(BadInput) as refusal:
        parse_view(json)

    assert refusal.value.field.startswith(field)


@pytest.mark.parametrize("part", ["version-id", "timestamp-ms", "schema-id", "summary", "default-namespace"])
def test_a_part_that_every_version_needs_is_named_when_it_is_missing(
    change: Callable[..., bytes], part: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_view(change(f"versions.0.{part}"))

    assert "versions[0]" in str(refusal.value)
    assert part in str(refusal.value)


def test_two_schemas_of_one_id_are_refused(document: dict[str, Any]) -> None:
    document["schemas"].append(document["schemas"][0])

    with pytest.raises(BadInput) as refusal:
        parse_view(msgspec.json.encode(document))

    assert refusal.value.field == "schemas[1].schema-id"


def test_what_is_too_large_is_refused(document: dict[str, Any]) -> None:
    json = msgspec.json.encode(document)

    with pytest.raises(BadInput, match="properties"):
        parse_view(json, limits=SizeLimits(max_properties_bytes=3))
    with pytest.raises(BadInput, match="columns"):
        parse_view(json, limits=SizeLimits(max_columns=0))


INVALID = {
    "ViewMetadataInvalidCurrentSchema.json": "versions[1].schema-id",
    "ViewMetadataInvalidCurrentVersion.json": "current-version-id",
    "ViewMetadataMissingCurrentVersion.json": "current-version-id",
    "ViewMetadataMissingLocation.json": "location",
    "ViewMetadataMultipleSQLsForDialect.json": "versions[0].representations[1].dialect",
}


@pytest.mark.parametrize("name", sorted(INVALID))
def test_published_invalid_views_are_refused_naming_the_field(specs: Path, name: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_view((specs / "fixtures" / "view" / name).read_bytes())

    assert refusal.value.field == INVALID[name]


def test_every_published_view_is_known_to_these_tests_and_the_valid_ones_survive(specs: Path) -> None:
    folder = specs / "fixtures" / "view"
    valid = [path for path in folder.iterdir() if path.name not in INVALID]

    assert {path.name for path in folder.iterdir()} >= INVALID.keys()
    assert valid
    for path in valid:
        document = msgspec.json.decode(path.read_bytes())
        assert msgspec.json.decode(encode_view(parse_view(path.read_bytes()))) == document
