import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.sorting import check_order, read_order, same_order
from tests.iceberg.samples import SCHEMA, to_json

TABLE = read_schema(to_json(SCHEMA)).value


def field(source=1, transform="identity", direction="asc", nulls="nulls-first"):
    return {"source-id": source, "transform": transform, "direction": direction, "null-order": nulls}


def order(*fields):
    return read_order(to_json({"order-id": 1, "fields": [*fields]}))


def test_an_order_over_columns_of_the_schema_is_accepted():
    check_order(order(field(), field(2, "day", "desc", "nulls-last")).value, TABLE)


@pytest.mark.parametrize(
    ("wrong", "at"),
    [(field(99), "source-id"), (field(1, "day"), "transform"), (field(2, "truncate[4]"), "transform")],
)
def test_an_order_that_does_not_fit_the_schema_is_refused(wrong, at):
    with pytest.raises(BadInput) as refused:
        check_order(order(field(), wrong).value, TABLE)

    assert refused.value.field == f"sort-order.fields[1].{at}"


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        (field(direction="up"), "direction"),
        (field(nulls="first"), "null-order"),
        (field(transform="bucket[]"), "transform"),
        ({"transform": "identity", "direction": "asc", "null-order": "nulls-last"}, "source-id"),
    ],
)
def test_a_broken_order_is_refused_with_the_field(wrong, at):
    with pytest.raises(BadInput) as refused:
        order(wrong)

    assert refused.value.field == f"sort-order.fields[0].{at}"


def test_orders_are_the_same_when_their_fields_are():
    assert same_order(order(field()).value, read_order(to_json({"order-id": 9, "fields": [field()]})).value)
    assert not same_order(order(field()).value, order(field(direction="desc")).value)
