from typing import Any

import pytest

from cynosure.iceberg.expressions import bind, encode_expression, parse_expression
from cynosure.iceberg.expressions.unbind import unbind
from cynosure.iceberg.types import NestedField, StructType, parse_type

NAMES = ("int", "long", "double", "string", "date", "timestamptz", "decimal", "binary", "uuid")
SCHEMA = StructType(
    tuple(
        NestedField(at, name, parse_type("decimal(9, 2)" if name == "decimal" else name), False)
        for at, name in enumerate(NAMES, 1)
    )
)


def compare(op: str, column: Any, value: Any) -> dict[str, Any]:
    return {"type": op, "term": column, "value": value}


@pytest.mark.parametrize(
    "json",
    [
        True,
        compare("lt", "int", 5),
        compare("gt-eq", "double", 2.5),
        compare("starts-with", "string", "ab"),
        compare("eq", "date", "2026-11-16"),
        compare("lt", "timestamptz", "2026-11-16T01:02:03.000004+00:00"),
        compare("not-eq", "decimal", "1.25"),
        compare("eq", "binary", "00ff"),
        compare("eq", "uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        {"type": "is-nan", "term": "double"},
        {"type": "not-in", "term": "long", "values": [1, 2**40]},
        compare("eq", {"type": "transform", "transform": "bucket[16]", "term": "string"}, 3),
        compare("eq", {"type": "transform", "transform": "day", "term": "timestamptz"}, "2026-11-16"),
        {
            "type": "or",
            "left": {"type": "not", "child": compare("lt", "int", 5)},
            "right": {
                "type": "and",
                "left": compare("eq", "int", 1),
                "right": {"type": "not-null", "term": "int"},
            },
        },
    ],
)
def test_a_filter_that_is_written_again_is_bound_to_the_same(json: Any) -> None:
    bound = bind(parse_expression(json), SCHEMA)

    written = encode_expression(unbind(bound), is_legacy=True)

    assert bind(parse_expression(written), SCHEMA) == bound


def test_two_columns_compared_are_written_in_the_current_form() -> None:
    columns = {
        "type": "lt",
        "left": {"type": "reference", "name": "int"},
        "right": {"type": "reference", "name": "long"},
    }
    bound = bind(parse_expression(columns), SCHEMA)

    assert bind(parse_expression(encode_expression(unbind(bound))), SCHEMA) == bound
