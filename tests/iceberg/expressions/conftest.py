"""Filters for property tests, and a schema to bind them to."""

import pytest

from cynosure.iceberg.types import StructType, parse_type

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "small", "required": False, "type": "int"},
        {"id": 3, "name": "name", "required": False, "type": "string"},
        {"id": 4, "name": "price", "required": False, "type": "decimal(9, 2)"},
        {"id": 5, "name": "day", "required": False, "type": "date"},
        {"id": 6, "name": "at", "required": False, "type": "timestamptz"},
        {"id": 7, "name": "ratio", "required": False, "type": "float"},
        {"id": 8, "name": "mass", "required": False, "type": "double"},
        {"id": 9, "name": "key", "required": False, "type": "uuid"},
        {"id": 10, "name": "raw", "required": False, "type": "binary"},
        {"id": 11, "name": "flag", "required": False, "type": "boolean"},
        {"id": 12, "name": "other", "required": False, "type": "long"},
        {"id": 13, "name": "shape", "required": False, "type": "geometry"},
        {"id": 14, "name": "blob", "required": False, "type": "variant"},
        {
            "id": 15,
            "name": "place",
            "required": True,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 16, "name": "city", "required": True, "type": "string"},
                    {"id": 17, "name": "zip.code", "required": False, "type": "int"},
                ],
            },
        },
        {
            "id": 18,
            "name": "tags",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 19,
                "element": {
                    "type": "struct",
                    "fields": [{"id": 20, "name": "tag", "required": True, "type": "string"}],
                },
                "element-required": True,
            },
        },
        {"id": 21, "name": "Twin", "required": False, "type": "int"},
        {"id": 22, "name": "twin", "required": False, "type": "int"},
    ],
}


@pytest.fixture(scope="session")
def schema() -> StructType:
    parsed = parse_type(SCHEMA)
    assert isinstance(parsed, StructType)
    return parsed
