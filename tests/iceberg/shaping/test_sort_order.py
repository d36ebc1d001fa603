"""Another sort order: what is left open, ids, and what is refused."""

from typing import Any

import pytest

from cynosure.common.errors import BadInput
from tests.iceberg.shaping.shapes import sorted_by, table


def test_nulls_come_first_when_ascending_and_last_when_descending_unless_said_otherwise():
    order = sorted_by(
        table(),
        {"source": "id"},
        {"source": "ts", "direction": "desc"},
        {"source": "name", "transform": "truncate[2]", "null-order": "nulls-last"},
    ).default_sort_order()

    assert order.order_id == 1
    assert [(one.sources, one.transform, one.direction, one.null_order) for one in order.fields] == [
        ((1,), "identity", "asc", "nulls-first"),
        ((2,), "identity", "desc", "nulls-last"),
        ((3,), "truncate[2]", "asc", "nulls-last"),
    ]


def test_an_order_that_the_table_has_is_used_again_and_no_fields_are_order_0():
    first = sorted_by(table(), {"source": "id"})
    second = sorted_by(first, {"source": "ts"})

    assert (first.default_sort_order_id, second.default_sort_order_id) == (1, 2)
    assert sorted_by(second, {"source": "id"}).default_sort_order_id == 1
    assert sorted_by(second).default_sort_order_id == 0
    assert sorted_by(second, {"source": "ts"}) is second


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ([{"source": "nobody"}], "fields[0].source"),
        ([{"source": "points.element.z"}], "fields[0].source"),
        ([{"source": "id"}, {"source": "point"}], "fields[1].transform"),
        ([{"source": "id", "transform": "year"}], "fields[0].transform"),
        ([{"source": "id", "transform": "random"}], "fields[0].transform"),
        ([{"source": "id"}, {"source": "id", "direction": "desc"}], "fields[1]"),
    ],
)
def test_what_cannot_be_sorted_by_is_refused_by_its_place(fields: list[dict[str, Any]], place: str):
    with pytest.raises(BadInput) as refused:
        sorted_by(table(), *fields)

    assert refused.value.field == place
    assert refused.value.fix
