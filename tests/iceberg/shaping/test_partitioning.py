"""Another partitioning: names, ids that stay, and what is refused."""

from typing import Any

import pytest

from cynosure.common.errors import BadInput
from tests.iceberg.shaping.shapes import partitioned, spec_fields, table, with_columns

DAY = {"source": "ts", "transform": "day"}
BUCKET = {"source": "id", "transform": "bucket[16]"}


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ({"source": "id"}, "id"),
        (DAY, "ts_day"),
        ({"source": "ts", "transform": "hour"}, "ts_hour"),
        (BUCKET, "id_bucket_16"),
        ({"source": "id", "transform": "bucket[016]"}, "id_bucket_16"),
        ({"source": "name", "transform": "truncate[4]"}, "name_trunc_4"),
        ({"source": "point.x", "transform": "identity"}, "point.x"),
        ({**DAY, "name": "d"}, "d"),
    ],
)
def test_fields_are_called_as_other_implementations_call_them(field: dict[str, Any], name: str):
    assert spec_fields(partitioned(table(), field))[0][2] == name


def test_fields_get_the_ids_after_the_last_one_in_their_order():
    made = partitioned(table(), DAY, BUCKET)

    assert spec_fields(made) == [(1000, "day", "ts_day"), (1001, "bucket[16]", "id_bucket_16")]
    assert (made.default_spec_id, made.last_partition_id) == (1, 1001)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_field_of_an_earlier_spec_keeps_its_id_and_its_name(format_version: int):
    named = partitioned(table(format_version), {**DAY, "name": "d"}, BUCKET)
    without = partitioned(named)

    assert spec_fields(without) == []
    assert spec_fields(partitioned(without, {"source": "name"}, DAY)) == [
        (1002, "identity", "name"),
        (1000, "day", "d"),
    ]


def test_a_field_can_be_renamed_and_keeps_its_id():
    assert spec_fields(partitioned(partitioned(table(), DAY), {**DAY, "name": "d"})) == [(1000, "day", "d")]


def test_a_spec_that_the_table_has_is_used_again_and_the_current_one_changes_nothing():
    first = partitioned(table(), DAY)
    second = partitioned(first, BUCKET)

    assert partitioned(second, DAY).default_spec_id == first.default_spec_id
    assert partitioned(second, BUCKET) is second
    assert partitioned(second).default_spec_id == 0


def test_format_version_1_makes_void_fields_of_those_that_go():
    first = partitioned(table(1), DAY, {"source": "name"})

    second = partitioned(first, BUCKET, {"source": "name"})
    third = partitioned(second, DAY)

    assert spec_fields(second) == [
        (1000, "void", "ts_day"),
        (1001, "identity", "name"),
        (1002, "bucket[16]", "id_bucket_16"),
    ]
    assert spec_fields(third) == [
        (1000, "void", "ts_day_1000"),
        (1001, "void", "name"),
        (1002, "void", "id_bucket_16"),
        (1003, "day", "ts_day"),
    ]
    assert partitioned(third, DAY) is third


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ([{"source": "nobody"}], "fields[0].source"),
        ([{"source": ""}], "fields[0].source"),
        ([{"source": "points.element.z"}], "fields[0].source"),
        ([{"source": "point"}], "fields[0].transform"),
        ([DAY, {"source": "id", "transform": "day"}], "fields[1].transform"),
        ([{"source": "id", "transform": "void"}], "fields[0].transform"),
        ([{"source": "id", "transform": "zorder"}], "fields[0].transform"),
        ([{"source": "id", "transform": "bucket"}], "fields[0].transform"),
        ([{"source": "id", "transform": "bucket[0]"}], "fields[0].transform"),
        ([{"source": "id", "transform": "bucket[4294967296]"}], "fields[0].transform"),
        ([DAY, DAY], "fields[1]"),
        ([DAY, {"source": "ts", "transform": "hour"}], "fields[1]"),
        ([{**DAY, "name": "d"}, {**BUCKET, "name": "d"}], "fields[1].name"),
        ([{**DAY, "name": "name"}], "fields[0].name"),
        ([{**DAY, "name": ""}], "fields[0].name"),
        ([{"source": "id", "name": "name"}], "fields[0].name"),
    ],
)
def test_what_cannot_partition_is_refused_by_its_place(fields: list[dict[str, Any]], place: str):
    for format_version in (1, 2, 3):
        with pytest.raises(BadInput) as refused:
            partitioned(table(format_version), *fields)
        assert refused.value.field == place
        assert refused.value.fix


def test_a_new_column_can_be_partitioned_by():
    made = partitioned(with_columns(table(), {"name": "region", "type": "string"}), {"source": "region"})

    assert made.default_spec().fields[0].sources == (10,)
