"""Published metadata files: each is read as Iceberg reads it, or refused for the reason it was made for."""

import json
from pathlib import Path

import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.metadata import encode_metadata, parse_metadata

INVALID = {
    "TableMetadataUnsupportedVersion.json": "format-version",
    "TableMetadataV1MissingSchemaType.json": "schema.type",
    "TableMetadataV2CurrentSchemaNotFound.json": "current-schema-id",
    "TableMetadataV2MissingLastPartitionId.json": "last-partition-id",
    "TableMetadataV2MissingPartitionSpecs.json": "partition-specs",
    "TableMetadataV2MissingSchemas.json": "schemas",
    "TableMetadataV2MissingSortOrder.json": "sort-orders",
}


def files(specs: Path) -> list[Path]:
    found = sorted((specs / "fixtures" / "metadata").glob("*.json"))
    assert found
    return found


def test_invalid_files_are_refused_with_the_field(specs):
    names = {path.name for path in files(specs)}
    assert names.issuperset(INVALID)

    for name, field in INVALID.items():
        with pytest.raises(BadInput) as refused:
            parse_metadata((specs / "fixtures" / "metadata" / name).read_bytes())
        assert refused.value.field == field


def test_valid_files_come_back_whole(specs):
    for path in files(specs):
        if path.name in INVALID:
            continue
        document = json.loads(path.read_bytes())
        metadata = parse_metadata(path.read_bytes())
        again = json.loads(encode_metadata(metadata))

        assert parse_metadata(encode_metadata(metadata)) == metadata
        for name, value in document.items():
            if name != "schema":  # comes back with the id that old writers left out
                assert again[name] == value, (path.name, name)
