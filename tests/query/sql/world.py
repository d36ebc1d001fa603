"""Tables that statements of these tests name: t, u, w and some views, in every catalog and namespace."""

from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from cynosure.query.engine import SessionValues
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundName, BoundQuery, BoundTable, BoundView, TableMention
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_statement, parse_view
from cynosure.query.sql.statements import Query


def field(id_: int, name: str, type_: Type) -> NestedField:
    return NestedField(id_, name, type_, is_required=False)


PAIR = StructType((field(21, "a", INT), field(22, "b", STRING)))
T = Schema(
    0,
    (
        field(1, "id", LONG),
        field(2, "name", STRING),
        field(3, "price", DecimalType(15, 2)),
        field(4, "day", DATE),
        field(5, "ts", TIMESTAMPTZ),
        field(6, "ts_ntz", TIMESTAMP),
        field(7, "s", StructType((field(8, "a", INT), field(9, "b", STRING)))),
        field(10, "arr", ListType(11, INT, is_element_required=False)),
        field(12, "m", MapType(13, STRING, 14, INT, is_value_required=False)),
        field(15, "flag", BOOLEAN),
        field(16, "dbl", DOUBLE),
        field(17, "k", INT),
        field(18, "moment", TIME),
        field(19, "list_of_structs", ListType(20, PAIR, is_element_required=False)),
        field(23, "raw", BINARY),
    ),
)
U = Schema(0, (field(1, "id", LONG), field(2, "uname", STRING), field(3, "k", INT)))
W = Schema(0, (field(1, "id", LONG), field(2, "wname", STRING)))
SCHEMAS = {"t": T, "u": U, "w": W, "masked": T}
VIEWS = {
    "v1": ("SELECT id, name AS other FROM t WHERE price > 3", ("a", "b")),
    "v2": ("SELECT * FROM u", ("id", "uname", "k")),
    "v3": ("WITH q AS (SELECT * FROM v2 WHERE k > 1) SELECT uname, id FROM q", ("uname", "id")),
    "narrow": ("SELECT * FROM t", ("id", "k")),
    "renamed": ("SELECT k, id FROM u", ("id", "k")),
    "covered": ("SELECT k, name FROM masked", ("name", "k")),
    "wide": ("SELECT * FROM t", (*(each.name for each in T.fields if each.name not in ("id", "raw")), "x")),
    "turned": ("SELECT k, uname, id FROM u", ("ID", "k", "uname")),
    "wrong": ("SELECT id FROM t", ("a", "b")),
}
SESSION = SessionValues("alice", "cat", "a.b", 1_700_000_000_123_456)


class Tables(dict[int, BoundName]):
    """What mentions stand for, views inside views included."""

    def __init__(self, mentions: tuple[TableMention, ...]) -> None:
        super().__init__()
        self._next = 1000
        self._add(mentions)

    def _add(self, mentions: tuple[TableMention, ...]) -> None:
        for each in mentions:
            name = each.parts[-1].lower()
            if name.startswith(("branch_", "tag_")):
                name = each.parts[-2].lower()
            if name in VIEWS:
                text, columns = VIEWS[name]
                tree = parse_view(text)
                inner = mentions_of(tree, self._next, SESSION)
                self._next += 100
                self._add(inner)
                self[each.number] = BoundView(tree, columns, "cat", ("a", "b"), f"cat.a.b.{name}")
            else:
                masked = frozenset({2, 8}) if name == "masked" else frozenset()
                self[each.number] = BoundTable(SCHEMAS[name], masked)


def bind(text: str) -> BoundQuery:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return bind_query(statement.tree, Tables(mentions_of(statement.tree, session=SESSION)), SESSION)


def names_of(schema: Schema, ids: tuple[int, ...]) -> list[str]:
    return [each.name for each in schema.fields if each.id in ids]
