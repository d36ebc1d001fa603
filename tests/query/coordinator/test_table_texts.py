"""What SHOW CREATE TABLE writes can be read again."""

import msgspec
import sqlglot

from cynosure.query.catalog_access.port import OpenedTable, RowFilter, TableName
from cynosure.query.coordinator.table_texts import find_order, write_create

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True, "doc": "it's the key"},
        {"id": 2, "name": "odd name`s", "type": "decimal(10, 2)", "required": False},
        {
            "id": 3,
            "name": "Nested",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 4, "name": "camelCase", "type": "timestamptz", "required": False},
                    {
                        "id": 5,
                        "name": "with space",
                        "required": True,
                        "type": {
                            "type": "map",
                            "key-id": 6,
                            "key": "string",
                            "value-id": 7,
                            "value": {
                                "type": "list",
                                "element-id": 8,
                                "element": "int",
                                "element-required": True,
                            },
                            "value-required": False,
                        },
                    },
                ],
            },
        },
    ],
}
METADATA = {
    "format-version": 2,
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "default-spec-id": 1,
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {
            "spec-id": 1,
            "fields": [
                {"name": "d", "transform": "day", "source-id": 4, "field-id": 1000},
                {"name": "gone", "transform": "void", "source-id": 1, "field-id": 1001},
                {"name": "odd", "transform": "identity", "source-id": 2, "field-id": 1002},
            ],
        },
    ],
    "default-sort-order-id": 1,
    "sort-orders": [
        {
            "order-id": 1,
            "fields": [
                {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"},
                {"transform": "bucket[4]", "source-id": 2, "direction": "desc", "null-order": "nulls-last"},
            ],
        }
    ],
    "properties": {"a'b": "c\\d\ne", "comment": "two\nlines"},
}
TABLE = OpenedTable(
    name=TableName("my-lake", ("shop", "eu"), "t"),
    uuid="u",
    snapshot_id=0,
    schema=msgspec.json.encode(SCHEMA),
    is_current_schema=True,
    row_filter=RowFilter(),
    masks=(),
    policies=(),
    places=(),
    metadata=METADATA,
)


def test_a_table_is_written_as_spark_writes_it():
    assert write_create(TABLE) == (
        "CREATE TABLE `my-lake`.shop.eu.t (\n"
        "  id BIGINT NOT NULL COMMENT 'it\\'s the key',\n"
        "  `odd name``s` DECIMAL(10,2),\n"
        "  Nested STRUCT<camelCase: TIMESTAMP, `with space`: MAP<STRING, ARRAY<INT>> NOT NULL>)\n"
        "USING iceberg\n"
        "PARTITIONED BY (days(Nested.camelCase), `odd name``s`)\n"
        "COMMENT 'two\\nlines'\n"
        "TBLPROPERTIES (\n"
        "  'a\\'b' = 'c\\\\d\\ne',\n"
        "  'format-version' = '2')"
    )
    assert find_order(TABLE) == "id ASC NULLS FIRST, bucket(4, `odd name``s`) DESC NULLS LAST"


def test_what_is_written_can_be_parsed_again():
    made = sqlglot.parse_one(write_create(TABLE), dialect="spark")

    assert [each.name for each in made.find_all(sqlglot.exp.ColumnDef)][:2] == ["id", "odd name`s"]
    properties = {
        each.this.name: each.args["value"].name
        for each in made.find_all(sqlglot.exp.Property)
        if each.args.get("value")
    }
    assert properties["a'b"] == "c\\d\ne"
