"""A filter that asks a mapping table is understood exactly, or refused with the reason."""

import msgspec
import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Constant,
    Expression,
    IdReference,
    NamedReference,
    Or,
)
from cynosure.iceberg.restrictions.binding import bind_filter, check_mapping
from cynosure.iceberg.restrictions.contents import parse_row_filter
from cynosure.iceberg.restrictions.language import CURRENT_USER, is_member
from cynosure.iceberg.restrictions.mapping import Mapped, describe_mapped, find_mapped, in_mapping
from cynosure.iceberg.restrictions.readers import Reader
from cynosure.iceberg.restrictions.resolving import resolve
from cynosure.iceberg.restrictions.wire import ReadRestrictions
from cynosure.iceberg.schema import Schema, decode_schema

REGION = NamedReference("region")
OWN = Comparison("eq", NamedReference("user"), CURRENT_USER)
PLAIN = in_mapping(Mapped(REGION, ("gov", "m"), "r", TRUE))
OF_USER = in_mapping(Mapped(REGION, ("gov", "m"), "r", OWN))


def parse(given: object) -> Expression:
    return parse_row_filter(msgspec.json.encode({"enable": True, "filter": given}).decode()).filter


UNDERSTOOD = {
    "region IN (SELECT r FROM gov.m)": PLAIN,
    "region IN (SELECT m.r FROM gov.m)": PLAIN,
    "region IN (SELECT gov.m.r FROM gov.m)": PLAIN,
    "region IN (SELECT x.r FROM gov.m AS x WHERE x.user = current_user())": OF_USER,
    "region IN (SELECT r FROM gov.m WHERE (current_user() = user))": OF_USER,
    "EXISTS (SELECT 1 FROM gov.m WHERE m.r = region)": PLAIN,
    "EXISTS (SELECT * FROM gov.m x WHERE region = x.r AND user = current_user())": OF_USER,
    "EXISTS (SELECT 1 FROM `gov`.`m` WHERE (m.user = current_user() AND (gov.m.r = region)))": OF_USER,
    "id = 1 OR region IN (SELECT r FROM gov.m)": Or(
        Comparison("eq", NamedReference("id"), Constant(1)), PLAIN
    ),
    "region IN (SELECT r FROM a.b.c.d.m WHERE is_member('x') AND m.user = current_user())": in_mapping(
        Mapped(REGION, ("a", "b", "c", "d", "m"), "r", And(is_member("x"), OWN))
    ),
    "a.b IN (SELECT s.r FROM gov.m)": in_mapping(Mapped(NamedReference("a.b"), ("gov", "m"), "s.r", TRUE)),
}


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_what_is_understood(text: str, expected: object) -> None:
    assert parse(text) == expected


REFUSED = [
    "a NOT IN (SELECT b FROM g.m)",
    "NOT (a IN (SELECT b FROM g.m))",
    "NOT EXISTS (SELECT 1 FROM g.m WHERE m.b = a)",
    "NOT (a = 1 OR a IN (SELECT b FROM g.m))",
    "a IN (SELECT b FROM m)",
    "a IN (SELECT b FROM `g.m`)",
    "a IN (SELECT b, c FROM g.m)",
    "a IN (SELECT * FROM g.m)",
    "a IN (SELECT 1 FROM g.m)",
    "a IN (SELECT upper(b) FROM g.m)",
    "a IN (SELECT b AS c FROM g.m)",
    "a IN (SELECT b FROM g.m, g.n)",
    "a IN (SELECT b FROM g.m JOIN g.n ON m.x = n.x)",
    "a IN (SELECT b FROM g.m LIMIT 1)",
    "a IN (SELECT b FROM g.m GROUP BY b)",
    "a IN (SELECT b FROM g.m ORDER BY b)",
    "a IN (SELECT b FROM g.m TABLESAMPLE (5 ROWS))",
    "a IN (SELECT b FROM g.m VERSION AS OF 1)",
    "a IN (SELECT b FROM g.m x(b, c))",
    "a IN (SELECT b FROM g.m LATERAL VIEW explode(x) t)",
    "a IN (SELECT AS STRUCT b FROM g.m)",
    "a IN (SELECT b FROM g.m UNION SELECT c FROM g.n)",
    "a IN (WITH m AS (SELECT 1) SELECT b FROM m)",
    "a IN ((SELECT b FROM g.m))",
    "a IN (1, (SELECT b FROM g.m))",
    "a = (SELECT b FROM g.m)",
    "a = ANY (SELECT b FROM g.m)",
    "(a, b) IN (SELECT a, b FROM g.m)",
    "current_user() IN (SELECT b FROM g.m)",
    "a IN (SELECT b FROM g.m) OR c IN (SELECT d FROM g.n)",
    "a IN (SELECT b FROM g.m WHERE c IN (SELECT d FROM g.n))",
    "a IN (SELECT b FROM g.m WHERE m.c = d.e)",
    "EXISTS (SELECT 1 FROM g.m)",
    "EXISTS (SELECT b FROM g.m WHERE m.b = a)",
    "EXISTS (SELECT 1 FROM g.m WHERE b = a)",
    "EXISTS (SELECT 1 FROM g.m WHERE m.b = m.a)",
    "EXISTS (SELECT 1 FROM g.m WHERE m.b = a AND m.c = d)",
    "EXISTS (SELECT 1 FROM g.m WHERE m.b = a OR m.c = 1)",
    "EXISTS (SELECT 1 FROM g.m WHERE m.b > a)",
    "EXISTS (SELECT 1 FROM g.m WHERE m.b <=> a)",
    "EXISTS (SELECT 1 FROM g.m x WHERE m.b = a)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)

    assert refused.value.field.startswith("content.filter")
    assert refused.value.fix


NODE = {
    "type": "in-mapping",
    "term": "region",
    "mapping": {
        "namespace": ["gov"],
        "name": "m",
        "column": "r",
        "filter": {"type": "eq", "term": "user", "value": "ann"},
    },
}


def test_the_same_can_be_said_in_json() -> None:
    expected = in_mapping(
        Mapped(REGION, ("gov", "m"), "r", Comparison("eq", NamedReference("user"), Constant("ann")))
    )
    by_reference = {**NODE, "term": {"type": "reference", "name": "region"}}
    either = {"type": "or", "left": {"type": "eq", "term": "id", "value": 1}, "right": NODE}

    assert parse(NODE) == parse(by_reference) == expected
    assert parse(either) == Or(Comparison("eq", NamedReference("id"), Constant(1)), expected)
    assert parse({**NODE, "mapping": {"namespace": ["gov"], "name": "m", "column": "r"}}) == PLAIN


@pytest.mark.parametrize(
    "node",
    [
        {"type": "not", "child": NODE},
        {"type": "and", "left": NODE, "right": NODE},
        {"type": "in-mapping", "term": "region"},
        {**NODE, "term": {"type": "reference", "id": 1}},
        {**NODE, "where": True},
        {**NODE, "mapping": 0},
        {**NODE, "mapping": {**NODE["mapping"], "namespace": []}},
        {**NODE, "mapping": {**NODE["mapping"], "namespace": "gov"}},
        {**NODE, "mapping": {**NODE["mapping"], "columns": ["r"]}},
        {**NODE, "mapping": {**NODE["mapping"], "filter": NODE}},
        {**NODE, "mapping": {**NODE["mapping"], "filter": "user = 'ann'"}},
        {**NODE, "mapping": {**NODE["mapping"], "filter": {"type": "in-mapping"}}},
    ],
    ids=lambda node: msgspec.json.encode(node).decode()[:60],
)
def test_json_that_is_not_whole_is_refused(node: dict) -> None:
    with pytest.raises(BadInput) as refused:
        parse(node)

    assert refused.value.field.startswith("content.filter")


def test_roles_of_the_mappings_filter_are_roles_of_the_policy() -> None:
    parsed = parse_row_filter(
        '{"enable":true,"filter":"a IN (SELECT b FROM g.m WHERE is_member(\'x\')) AND is_member(\'y\')"}'
    )

    assert parsed.roles == {"x", "y"}
    assert parsed.mentioned.columns == ("a",)


def test_the_mapping_is_asked_about_who_reads() -> None:
    resolved = find_mapped(resolve(OF_USER, Reader("ann")))

    assert resolved is not None
    assert resolved.filter == Comparison("eq", NamedReference("user"), Constant("ann"))
    only_members = parse("region IN (SELECT r FROM gov.m WHERE is_member('x'))")
    assert resolve(only_members, Reader("ann")) == FALSE
    assert resolve(only_members, Reader("ann", frozenset({"x"}), frozenset({"x"}))) == PLAIN


def test_no_constant_is_in_what_people_are_told() -> None:
    text = describe_mapped(parse("id = 7 OR region IN (SELECT r FROM gov.m WHERE user = 'secret')"))

    assert text == "(id = (int) or region in (select r from gov.m where user = (string)))"


def schema_of(**types: str) -> Schema:
    fields = [
        {"id": number, "name": name, "type": type_, "required": False}
        for number, (name, type_) in enumerate(types.items(), 1)
    ]
    return decode_schema(msgspec.json.encode({"type": "struct", "schema-id": 0, "fields": fields}))


@pytest.mark.parametrize(
    "type_", ["string", "int", "long", "date", "decimal(9, 2)", "uuid", "timestamptz_ns"]
)
def test_columns_of_the_same_type_fit(type_: str) -> None:
    mapped = find_mapped(PLAIN)
    assert mapped is not None

    check_mapping(mapped, schema_of(id="long", Region=type_), schema_of(R=type_), field="f")
    check_mapping(mapped, None, schema_of(r=type_), field="f")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("int", "long"),
        ("string", "int"),
        ("decimal(9, 2)", "decimal(9, 3)"),
        ("timestamp", "timestamptz"),
        ("double", "double"),
        ("float", "float"),
    ],
)
def test_nothing_is_cast(column: str, value: str) -> None:
    mapped = find_mapped(PLAIN)
    assert mapped is not None

    with pytest.raises(BadInput) as refused:
        check_mapping(mapped, schema_of(region=column), schema_of(r=value), field="f")

    assert refused.value.field == "f"
    assert refused.value.details["column"]


@pytest.mark.parametrize("columns", [{"x": "string"}, {"r": "string"}, {"r": "string", "user": "int"}])
def test_the_mapping_must_have_what_is_asked_of_it(columns: dict[str, str]) -> None:
    mapped = find_mapped(OF_USER)
    assert mapped is not None

    with pytest.raises(BadInput):
        check_mapping(mapped, None, schema_of(**columns), field="f")


def test_engines_are_told_in_a_node_of_its_own() -> None:
    schema = schema_of(id="long", region="string")
    parsed = parse("id = 7 OR region IN (SELECT r FROM gov.m WHERE user = current_user())")
    bound = bind_filter(resolve(parsed, Reader("ann")), schema, field="f")
    other = bind_filter(resolve(PLAIN, Reader("ann")), schema, field="f").expression

    found = ReadRestrictions(And(bound.expression, other), policies=("p", "q"), mapped_by=("p", "q"))

    assert bound.ids == {"id": 1, "region": 2}
    told = msgspec.json.decode(found.json_with_policies)
    term = {"type": "reference", "id": 2}
    assert told["required-row-filter"]["left"]["right"] == {"type": "in-mapping", "term": term, "mapping": 0}
    assert told["required-row-filter"]["right"] == {"type": "in-mapping", "term": term, "mapping": 1}
    user = {"type": "reference", "name": "user"}
    assert told["cynosure-mappings"] == [
        {
            "namespace": ["gov"],
            "name": "m",
            "column": "r",
            "filter": {"type": "eq", "left": user, "right": "ann"},
            "policy": "p",
        },
        {"namespace": ["gov"], "name": "m", "column": "r", "filter": True, "policy": "q"},
    ]
    assert told["cynosure-policies"] == ["p", "q"]
    assert find_mapped(other) == Mapped(IdReference(2), ("gov", "m"), "r", TRUE)
