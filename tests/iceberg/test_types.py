"""Types: every text form, every refusal, what may become what."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import IcebergType

from cynosure.common.errors import BadInput
from cynosure.iceberg import types
from cynosure.iceberg.types import (
    MAX_DEPTH,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    can_promote,
    children,
    encode_type,
    is_orderable,
    is_primitive,
    min_format_version,
    parse_type,
    walk_fields,
)

plain = st.sampled_from(list(types.PLAIN.values()))
decimals = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
shapes = st.sampled_from(
    [GeometryType(), GeometryType("srid:3857"), GeographyType(), GeographyType("srid:4326", "karney")]
)
primitives = plain | decimals | st.builds(FixedType, st.integers(0, 64)) | shapes
ids = st.integers(1, 10_000)


def nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    fields = st.builds(
        NestedField,
        id=ids,
        name=st.text(max_size=5),
        type=inner,
        is_required=st.booleans(),
        doc=st.none() | st.text(),
    )
    return (
        st.builds(StructType, st.lists(fields, max_size=4).map(tuple))
        | st.builds(ListType, ids, inner, st.booleans())
        | st.builds(MapType, ids, inner, ids, inner, st.booleans())
    )


all_types = st.recursive(primitives, nested, max_leaves=8)


@given(all_types)
def test_the_json_form_of_a_type_is_read_back_as_the_same_type(type_) -> None:
    assert parse_type(encode_type(type_)) == type_


@given(st.recursive(plain.filter(lambda one: one.name != "variant") | decimals, nested, max_leaves=6))
def test_pyiceberg_reads_what_is_written(type_) -> None:
    theirs = IcebergType.model_validate_json(json.dumps(encode_type(type_)))

    assert parse_type(json.loads(theirs.model_dump_json())) == type_


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("STRING", "string"),
        ("decimal(9,2)", "decimal(9, 2)"),
        ("Decimal( 38 ,  0 )", "decimal(38, 0)"),
        ("fixed[ 16 ]", "fixed[16]"),
        ("geometry", "geometry"),
        ("geometry(OGC:CRS84)", "geometry"),
        ("geometry( srid:3857 )", "geometry(srid:3857)"),
        ("geography()", "geography"),
        ("geography(OGC:CRS84, spherical)", "geography"),
        ("geography(srid:4326,Karney)", "geography(srid:4326, karney)"),
        ("geography(OGC:CRS84, vincenty)", "geography(OGC:CRS84, vincenty)"),
    ],
)
def test_text_is_read_whatever_its_spaces_and_case_and_printed_in_one_way(text: str, canonical: str) -> None:
    type_ = parse_type(text)

    assert str(type_) == canonical
    assert parse_type(canonical) == type_


@pytest.mark.parametrize(
    "text",
    [
        "",
        "integer",
        "decimal",
        "decimal(39, 2)",
        "decimal(2, 3)",
        "decimal(9, -2)",
        "fixed",
        "fixed[-1]",
        "fixed[9999999999]",
        "geography(a, triangular)",
        "geometry(a, b)",
        "struct",
        "list",
        " int",
        "int\n",
        "decimal(٩, 2)",
        "x" * 5_000,
    ],
)
def test_an_unknown_type_is_refused_with_the_place_where_it_was_named(text: str) -> None:
    struct = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": text}]}

    with pytest.raises(BadInput) as refusal:
        parse_type(struct, field="schema")

    assert refusal.value.field == "schema.fields[0].type"
    assert len(str(refusal.value)) < 1_000


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (None, "type"),
        (5, "type"),
        (["int"], "type"),
        ({}, "type.type"),
        ({"type": ["struct"]}, "type.type"),
        ({"type": "set"}, "type.type"),
        ({"type": "struct"}, "type.fields"),
        ({"type": "struct", "fields": {}}, "type.fields"),
        ({"type": "struct", "fields": ["int"]}, "type.fields[0]"),
        ({"type": "struct", "fields": [{"name": "a", "required": True, "type": "int"}]}, "type.fields[0].id"),
        (
            {"type": "struct", "fields": [{"id": True, "name": "a", "required": True, "type": "int"}]},
            "type.fields[0].id",
        ),
        (
            {"type": "struct", "fields": [{"id": 2**31, "name": "a", "required": True, "type": "int"}]},
            "type.fields[0].id",
        ),
        ({"type": "struct", "fields": [{"id": 1, "required": True, "type": "int"}]}, "type.fields[0].name"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]}, "type.fields[0].required"),
        (
            {"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": "int", "doc": 1}]},
            "type.fields[0].doc",
        ),
        ({"type": "list", "element-id": 1, "element": "int"}, "type.element-required"),
        ({"type": "list", "element": "int", "element-required": True}, "type.element-id"),
        (
            {
                "type": "map",
                "key-id": 1,
                "key": "int",
                "value-id": 2,
                "value": "nope",
                "value-required": True,
            },
            "type.value",
        ),
    ],
)
def test_a_damaged_type_is_refused_naming_the_field(document: object, field: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_type(document)

    assert refusal.value.field == field


def test_nesting_is_bounded_so_that_no_walk_can_exhaust_the_stack() -> None:
    def nest(depth: int) -> object:
        document: object = "int"
        for _ in range(depth):
            document = {"type": "list", "element-id": 1, "element": document, "element-required": True}
        return document

    deepest = parse_type(nest(MAX_DEPTH))
    with pytest.raises(BadInput, match="nested too deeply"):
        parse_type(nest(MAX_DEPTH + 1))
    with pytest.raises(BadInput, match="nested too deeply"):
        parse_type(nest(50_000))

    assert encode_type(deepest) == nest(MAX_DEPTH)
    assert min_format_version(deepest) == 1
    assert len(list(walk_fields(deepest))) == MAX_DEPTH
    assert str(deepest).count("list<") == MAX_DEPTH


def test_what_came_with_format_version_3_is_known_at_any_depth() -> None:
    modern = ("timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry(srid:1)", "geography")
    old = ("boolean", "timestamptz", "decimal(9, 2)", "fixed[3]")

    assert {min_format_version(parse_type(text)) for text in modern} == {3}
    assert {min_format_version(parse_type(text)) for text in old} == {1}
    inner = MapType(2, types.STRING, 3, ListType(4, types.VARIANT, True), True)
    assert min_format_version(StructType((NestedField(1, "a", inner, True),))) == 3


def test_exactly_the_promotions_of_the_format_are_allowed() -> None:
    sample = [
        *types.PLAIN.values(),
        *(DecimalType(9, 2), DecimalType(10, 2), DecimalType(10, 3), FixedType(4)),
        GeometryType(),
        ListType(1, types.INT, True),
    ]

    promoted = {
        (str(one), str(other))
        for one in sample
        for other in sample
        if one not in (other, types.UNKNOWN) and can_promote(one, other)
    }
    in_v2 = {
        (str(one), str(other))
        for one in sample
        for other in sample
        if one != other and can_promote(one, other, format_version=2)
    }

    always = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(10, 2)")}
    assert promoted == always | {("date", "timestamp"), ("date", "timestamp_ns")}
    assert in_v2 == always
    assert all(can_promote(types.UNKNOWN, other) for other in sample)
    assert all(can_promote(one, one, format_version=1) for one in sample)


def test_fields_are_walked_with_their_paths_parents_first() -> None:
    point = StructType((NestedField(5, "x", types.INT, True), NestedField(6, "y", types.INT, False)))
    schema = StructType(
        (
            NestedField(1, "tags", MapType(2, types.STRING, 3, point, False), True),
            NestedField(4, "list", ListType(7, types.STRING, True), True),
        )
    )

    walked = [(path, field.id, field.is_required) for path, field in walk_fields(schema)]

    assert walked == [
        ("tags", 1, True),
        ("tags.key", 2, True),
        ("tags.value", 3, False),
        ("tags.value.x", 5, True),
        ("tags.value.y", 6, False),
        ("list", 4, True),
        ("list.element", 7, True),
    ]


def test_nested_types_and_variants_are_not_primitive_and_shapes_have_no_order() -> None:
    assert is_primitive(types.UNKNOWN)
    assert not is_primitive(types.VARIANT)
    assert not is_primitive(StructType(()))
    assert is_orderable(DecimalType(3, 1))
    assert not any(
        map(is_orderable, (types.UNKNOWN, types.VARIANT, GeometryType(), ListType(1, types.INT, True)))
    )
    assert children(types.INT) == ()
