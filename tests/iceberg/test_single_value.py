"""Single values as JSON: exact in both directions, and refused with the field's name otherwise."""

import datetime
import math
import struct
from decimal import Context, Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.single_value import check_default, read_value, write_value
from cynosure.iceberg.types import (
    DATE,
    FLOAT,
    INT,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
    parse_type,
)

CONTEXT = Context(prec=50)
LONGS = st.integers(-(2**63), 2**63 - 1)

VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONGS,
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(),
    "date": st.integers(-(2**31), 2**31 - 1),
    "time": st.integers(0, 86_400_000_000 - 1),
    "timestamp": LONGS,
    "timestamptz": LONGS,
    "timestamp_ns": LONGS,
    "timestamptz_ns": LONGS,
    "uuid": st.uuids(),
    "fixed[3]": st.binary(min_size=3, max_size=3),
    "binary": st.binary(),
    "decimal(38, 10)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-10, CONTEXT)),
    "decimal(9, 0)": st.integers(-(10**9) + 1, 10**9 - 1).map(Decimal),
}


@pytest.mark.parametrize("text", sorted(VALUES))
@given(data=st.data())
def test_what_is_written_is_read_back_exactly(text: str, data: st.DataObject) -> None:
    type_ = parse_type(text)
    value = data.draw(VALUES[text])

    assert read_value(type_, write_value(type_, value), field="x") == value


@given(st.datetimes())
def test_timestamps_agree_with_pythons_own(moment: datetime.datetime) -> None:
    epoch = datetime.datetime(1970, 1, 1)  # noqa: DTZ001

    micros = read_value(TIMESTAMP, moment.isoformat(), field="x")

    assert micros == (moment - epoch) // datetime.timedelta(microseconds=1)
    assert write_value(TIMESTAMP, micros) == moment.isoformat(timespec="microseconds")


@pytest.mark.parametrize(
    ("text", "json", "value"),
    [
        ("date", "1969-12-31", -1),
        ("date", "+10000-01-01", 2932897),
        ("time", "00:00", 0),
        ("time", "22:31:08.5", 81_068_500_000),
        ("timestamp", "1970-01-01T00:00:01", 1_000_000),
        ("timestamptz", "1970-01-01T01:00:00+01:00", 0),
        ("timestamptz", "1970-01-01T00:00:00Z", 0),
        ("timestamp_ns", "1970-01-01T00:00:00.000000001", 1),
        ("decimal(9, 2)", "14.2", Decimal("14.20")),
        ("decimal(9, 2)", "-1E3", Decimal("-1000.00")),
        ("double", 3, 3.0),
        ("float", 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("binary", "00fFa0", b"\x00\xff\xa0"),
        ("uuid", "EB26BDB1-A1D8-4AA6-990E-DA940875492C", UUID("eb26bdb1-a1d8-4aa6-990e-da940875492c")),
    ],
)
def test_forms_that_other_writers_use_are_read(text: str, json: object, value: object) -> None:
    read = read_value(parse_type(text), json, field="x")

    assert read == value
    assert str(read) == str(value)


@pytest.mark.parametrize(
    ("text", "json"),
    [
        ("boolean", 1),
        ("boolean", "true"),
        ("int", True),
        ("int", 1.0),
        ("int", "1"),
        ("int", 2**31),
        ("long", -(2**63) - 1),
        ("float", 1e39),
        ("float", True),
        ("double", math.nan),
        ("double", math.inf),
        ("double", 10**400),
        ("double", "1.0"),
        ("string", 1),
        ("date", "2024-02-30"),
        ("date", "24-02-03"),
        ("date", "10000-01-01"),
        ("date", "+9999999-01-01"),
        ("date", 5),
        ("time", "24:00:00"),
        ("time", "23:59:60"),
        ("time", "00:00:00.0000001"),
        ("timestamp", "2024-01-01 00:00:00"),
        ("timestamp", "2024-01-01T00:00:00Z"),
        ("timestamp", "2024-01-01T00:00:00.0000001"),
        ("timestamptz", "2024-01-01T00:00:00"),
        ("timestamp_ns", "2262-04-12T00:00:00"),
        ("uuid", "eb26bdb1a1d84aa6990eda940875492c"),
        ("uuid", "{eb26bdb1-a1d8-4aa6-990e-da940875492c}"),
        ("fixed[3]", "0001"),
        ("binary", "0"),
        ("binary", "zz"),
        ("binary", "00 11"),
        ("decimal(9, 2)", 14.2),
        ("decimal(9, 2)", "14.205"),
        ("decimal(9, 2)", "10000000.00"),
        ("decimal(9, 2)", "NaN"),
        ("decimal(9, 2)", "1_0"),
        ("decimal(9, 2)", "1E999"),
        ("decimal(9, 2)", "9" * 10_000),
        ("unknown", "x"),
        ("variant", {}),
        ("geometry", "POINT(1 2)"),
        ("geography", "POINT(1 2)"),
        ("string", None),
    ],
)
def test_a_value_that_would_have_to_be_changed_to_fit_is_refused_without_being_repeated(
    text: str, json: object
) -> None:
    with pytest.raises(BadInput) as refusal:
        read_value(parse_type(text), json, field="schema.fields[0].initial-default")

    assert refusal.value.field == "schema.fields[0].initial-default"
    assert json in (None, {}) or repr(json) not in refusal.value.details.values()


def test_all_digits_of_the_widest_decimal_count() -> None:
    widest = DecimalType(38, 0)

    assert read_value(widest, "9" * 38, field="x") == 10**38 - 1
    with pytest.raises(BadInput):
        read_value(widest, "1" + "0" * 38, field="x")


POINT = StructType((NestedField(1, "x", INT, True), NestedField(2, "y", INT, False)))


def test_nested_values_are_read_by_field_id() -> None:
    type_ = MapType(3, DATE, 4, ListType(5, POINT, False), True)

    value = read_value(
        type_,
        {"keys": ["1970-01-02", "1970-01-03"], "values": [[{"1": 5, "2": 6}, None], [{"1": 7, "2": None}]]},
        field="x",
    )

    assert value == [(1, [{1: 5, 2: 6}, None]), (2, [{1: 7}])]


@pytest.mark.parametrize(
    ("type_", "json", "field"),
    [
        (POINT, [], "x"),
        (POINT, {"2": 1}, "x.1"),
        (POINT, {"1": "a"}, "x.1"),
        (ListType(5, INT, True), {}, "x"),
        (ListType(5, INT, True), [1, None], "x[1]"),
        (MapType(3, INT, 4, INT, True), [], "x"),
        (MapType(3, INT, 4, INT, True), {"keys": [1]}, "x.values"),
        (MapType(3, INT, 4, INT, True), {"keys": [None], "values": [1]}, "x.keys[0]"),
        (MapType(3, INT, 4, INT, True), {"keys": [1], "values": [1, 2]}, "x"),
    ],
)
def test_a_damaged_nested_value_is_refused_naming_the_part(type_, json: object, field: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read_value(type_, json, field="x")

    assert refusal.value.field == field


def test_a_default_is_null_or_a_value_and_a_structs_default_is_only_its_presence() -> None:
    for type_ in (INT, POINT, parse_type("variant"), parse_type("geometry")):
        check_default(type_, None, field="d")
    check_default(INT, 5, field="d")
    check_default(FLOAT, 5, field="d")
    check_default(TIMESTAMPTZ, "2024-01-01T00:00:00+00:00", field="d")
    check_default(TIMESTAMP_NS, "2024-01-01T00:00:00", field="d")
    check_default(ListType(1, INT, True), [1, 2], field="d")
    check_default(POINT, {}, field="d")

    for type_, json in (
        (INT, "5"),
        (POINT, {"1": 5}),
        (POINT, []),
        (POINT, False),
        (parse_type("variant"), {}),
    ):
        with pytest.raises(BadInput) as refusal:
            check_default(type_, json, field="d")
        assert refusal.value.field == "d"
