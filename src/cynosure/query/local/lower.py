"""Spark's bound tree to DuckDB's text, or the reason why this query is not run here.

    SELECT, set operations, CTEs, VALUES   here
    FROM and joins                         sources.py
    expressions                            expressions.py, operators.py, functions.py, aggregates.py

Names of the statement never get into the text: columns are `o<place>`, sources `s<number>`, CTEs `c<number>`.

A maintainer must not break: a part of a node that is not looked at is a part that is left out of the answer.
So every node's arguments are checked against those that are lowered.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from cynosure.query.engine import EngineQuery
from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.aggregates import order_key
from cynosure.query.local.arguments import INT_MAX
from cynosure.query.local.context import Context, LoweredQuery, Place
from cynosure.query.local.exact import Function
from cynosure.query.local.expressions import lower_expression
from cynosure.query.local.fallible import all_of, may_fail
from cynosure.query.local.naming import name_of_item
from cynosure.query.local.scope import Output, Scope
from cynosure.query.local.sources import Cte, Ctes, lower_from
from cynosure.query.local.typed import OutsideSubset, Typed, join_texts


class Lowered(Struct, frozen=True):
    """A statement for DuckDB."""

    sql: str
    types: tuple[t.SparkType, ...]
    names: tuple[str, ...]
    functions: tuple[Function, ...]


def lower_query(query: EngineQuery) -> Lowered:
    """The whole statement. `OutsideSubset` when it is not known to be answered as Spark would."""
    if query.session.time_zone != "UTC":
        raise OutsideSubset("a time zone other than UTC")
    relations: dict[str, tuple[Output, ...]] = {}
    for relation in query.relations:
        outputs = []
        for column in relation.columns:
            type_ = t.of_iceberg(column.type)
            if type_ is None:
                raise OutsideSubset("a column of a type that is not held alike")
            outputs.append(Output(column.name, type_))
        relations[relation.view.lower()] = tuple(outputs)
    lowering = _Lowering(relations)
    try:
        lowered = lowering.query(query.tree, None, {})
    except RecursionError:
        raise OutsideSubset("a statement that is nested too deep") from None
    types = tuple(each.type for each in lowered.outputs)
    if t.NULL in types:
        raise OutsideSubset("a column without a type")
    names = tuple(each.name for each in lowered.outputs)
    return Lowered(lowered.sql, types, names, tuple(lowering.context.functions.values()))


_SELECT_ARGS: Final = frozenset(
    {"with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}
) | {"distinct", "windows"}
_SET_ARGS: Final = frozenset({"with_", "this", "expression", "distinct", "order", "limit", "offset"})
_SUBQUERY_ARGS: Final = frozenset({"this", "alias", "with_", "order", "limit", "offset"})
_VALUES_ARGS: Final = frozenset({"expressions", "alias", "with_", "order", "limit", "offset"})
_SETS: Final[dict[type[exp.Expression], str]] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def only(node: exp.Expression, allowed: frozenset[str]) -> None:
    """Refuse a node that says more than is lowered."""
    for key, value in node.args.items():
        if value and key not in allowed:
            raise OutsideSubset(f"{type(node).__name__.upper()} with {key.strip('_').upper()}")


class _Lowering:
    """Of one statement."""

    def __init__(self, relations: dict[str, tuple[Output, ...]]) -> None:
        self._relations = relations
        self._ctes: Ctes = {}
        self._cte_number = 0
        self.context = Context(self._nested, lower_expression)

    def _nested(self, node: exp.Expression, scope: Scope | None) -> LoweredQuery:
        return self.query(node, scope, self._ctes)

    def query(self, node: exp.Expression, parent: Scope | None, ctes: Ctes) -> LoweredQuery:
        """A query of any form."""
        outer = self._ctes
        self._ctes = dict(ctes)
        try:
            prefix = self._with(node, parent)
            lowered = self._body(node, parent)
        finally:
            inner, self._ctes = self._ctes, outer
        if not prefix:
            return lowered
        texts = ", ".join(
            f"{cte.alias} AS {'MATERIALIZED ' if cte.uses[0] > 1 else ''}({cte.sql})"
            for cte in (inner[name] for name in prefix)
            if cte.uses[0]
        )
        # Kept together, whatever stands around it: WITH binds to this query only.
        return LoweredQuery(f"WITH {texts} {lowered.sql}" if texts else lowered.sql, lowered.outputs)

    def _with(self, node: exp.Expression, parent: Scope | None) -> list[str]:
        clause = node.args.get("with_")
        if clause is None:
            return []
        only(clause, frozenset({"expressions"}))
        names = []
        for each in clause.expressions:
            only(each, frozenset({"this", "alias"}))
            name = each.alias.lower()
            if name in names:
                raise OutsideSubset("WITH that names one query twice")
            lowered = self.query(each.this, parent, self._ctes)
            outputs = rename(lowered.outputs, [one.name for one in each.args["alias"].columns])
            self._cte_number += 1
            self._ctes[name] = Cte(f"c{self._cte_number}", lowered.sql, outputs, [0])
            names.append(name)
        return names

    def _body(self, node: exp.Expression, parent: Scope | None) -> LoweredQuery:
        if isinstance(node, exp.Select):
            return self._select(node, parent)
        if type(node) in _SETS:
            return self._set_operation(node, parent)
        if isinstance(node, exp.Subquery):
            only(node, _SUBQUERY_ARGS)
            inner = self.query(node.this, parent, self._ctes)
            tail = self._tail(node, list(inner.outputs))
            return LoweredQuery(f"({inner.sql}){tail}", inner.outputs) if tail else inner
        if isinstance(node, exp.Values):
            only(node, _VALUES_ARGS)
            rows = lower_values(node, Place(self.context, Scope(parent)))
            return LoweredQuery(rows.sql + self._tail(node, list(rows.outputs)), rows.outputs)
        raise OutsideSubset(type(node).__name__.upper())

    def _set_operation(self, node: exp.Expression, parent: Scope | None) -> LoweredQuery:
        only(node, _SET_ARGS)
        left = self.query(node.this, parent, self._ctes)
        right = self.query(node.expression, parent, self._ctes)
        if len(left.outputs) != len(right.outputs):
            raise OutsideSubset("a set operation of different numbers of columns")
        outputs = []
        for one, other in zip(left.outputs, right.outputs, strict=True):
            common = t.find_common(one.type, other.type)
            if common is None or not common.is_plain:
                raise OutsideSubset("a set operation of different types")
            is_fallible = one.is_fallible or other.is_fallible
            outputs.append(Output(one.name, common, is_fallible, max(one.letters, other.letters)))
        word = _SETS[type(node)] + ("" if node.args.get("distinct") else " ALL")
        is_keyed = bool(node.args.get("distinct")) or not isinstance(node, exp.Union)
        sides = [_with_types(each, outputs, is_keyed=is_keyed) for each in (left, right)]
        sql = f"({sides[0]}) {word} ({sides[1]})"
        return LoweredQuery(sql + self._tail(node, outputs), tuple(outputs))

    def _tail(self, node: exp.Expression, outputs: list[Output]) -> str:
        """ORDER BY, LIMIT and OFFSET behind what has only its columns to sort by."""
        order = node.args.get("order")
        keys = []
        for each in order.expressions if order is not None else []:
            place = _ordinal(each.this, len(outputs))
            if place is None and isinstance(each.this, exp.Column) and len(each.this.parts) == 1:
                named = [i for i, one in enumerate(outputs) if one.name.lower() == each.this.name.lower()]
                place = named[0] if len(named) == 1 else None
            if place is None or not outputs[place].type.is_plain:
                raise OutsideSubset("ORDER BY of a set operation")
            keys.append(order_key(each, str(place + 1)))
        return (f" ORDER BY {', '.join(keys)}" if keys else "") + _limits(node)

    def _select(self, node: exp.Select, parent: Scope | None) -> LoweredQuery:
        only(node, _SELECT_ARGS)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise OutsideSubset("DISTINCT ON")
        scope = Scope(parent)
        from_sql = lower_from(node, scope, self.context, self._ctes, self._relations)
        windows = {each.name.lower(): each for each in node.args.get("windows") or []}
        place = Place(self.context, scope, windows)
        scope.forbidden = frozenset(
            each.alias.lower() for each in node.expressions if isinstance(each, exp.Alias)
        )
        items = self._items(node, place)
        if scope.is_named_inside and (node.args.get("group") or node.args.get("having")):
            # Spark takes some of these only, by its own rules.
            raise OutsideSubset("a subquery of SELECT that names columns around it, with GROUP BY")
        where = self._condition(node.args.get("where"), place, "WHERE")
        scope.forbidden = frozenset()
        grouped = self._group(node.args.get("group"), items, place)
        having = self._condition(node.args.get("having"), self._having_place(items, place), "HAVING")
        if distinct is not None and not all(each.type.is_plain for _, each in items):
            raise OutsideSubset("DISTINCT of a nested column")
        order = self._order(node, items, place, is_distinct=distinct is not None)
        keyed = [distinct is not None or value.sql in grouped for _, value in items]
        texts = (
            _one_zero(value).sql if is_key else value.sql
            for (_, value), is_key in zip(items, keyed, strict=True)
        )
        columns = join_texts(", ", (f"{text} AS o{i}" for i, text in enumerate(texts)))
        sql = (
            f"SELECT {'DISTINCT ' if distinct is not None else ''}{columns}{from_sql}{where}{grouped}{having}"
            f"{order}{_limits(node)}"
        )
        outputs = tuple(Output(name, value.type, value.is_fallible, value.letters) for name, value in items)
        return LoweredQuery(sql, outputs)

    def _items(self, node: exp.Select, place: Place) -> list[tuple[str, Typed]]:
        items: list[tuple[str, Typed]] = []
        for each in node.expressions:
            if isinstance(each, exp.Star):
                items.extend(_without(each, place.scope.star()))
            elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                found = place.scope.star(each.table) if len(each.parts) == 2 else []
                if not found:
                    raise OutsideSubset("a star of a struct")
                items.extend(_without(each.this, found))
            else:
                value = self._item(each.this if isinstance(each, exp.Alias) else each, place)
                items.append((each.alias if isinstance(each, exp.Alias) else name_of_item(each), value))
        if not items:
            raise OutsideSubset("a SELECT without columns")
        return items

    @staticmethod
    def _item(node: exp.Expression, place: Place) -> Typed:
        value = place.lower(node)
        if isinstance(node, exp.Column):
            return value
        # Conditions are not moved below aggregates and windows, only below what is computed by row.
        is_fallible = node.find(exp.AggFunc, exp.Window) is None and may_fail(node, place)
        return replace(value, is_fallible=is_fallible)

    def _condition(self, clause: exp.Expression | None, place: Place, word: str) -> str:
        if clause is None:
            return ""
        return f" {word} {all_of(clause.this, place, is_filter=True).sql}"

    def _group(self, clause: exp.Expression | None, items: list[tuple[str, Typed]], place: Place) -> str:
        if clause is None:
            return ""
        only(clause, frozenset({"expressions", "rollup", "cube"}))
        for word in ("rollup", "cube"):
            if clause.args.get(word):
                # GROUP BY a, b WITH ROLLUP
                if len(clause.args[word]) != 1 or clause.args[word][0].expressions:
                    raise OutsideSubset(word.upper())
                keys = join_texts(", ", (self._key(each, items, place) for each in clause.expressions))
                return f" GROUP BY {word.upper()} ({keys})"
        keys = join_texts(", ", (self._grouping(each, items, place) for each in clause.expressions))
        return f" GROUP BY {keys}"

    def _grouping(self, node: exp.Expression, items: list[tuple[str, Typed]], place: Place) -> str:
        if isinstance(node, exp.Rollup | exp.Cube):
            keys = join_texts(", ", (self._key(each, items, place) for each in node.expressions))
            return f"{type(node).__name__.upper()} ({keys})"
        if isinstance(node, exp.GroupingSets):
            sets = []
            for each in node.expressions:
                parts = each.expressions if isinstance(each, exp.Tuple) else [each.unnest()]
                sets.append(f"({join_texts(', ', (self._key(part, items, place) for part in parts))})")
            return f"GROUPING SETS ({join_texts(', ', sets)})"
        return self._key(node, items, place)

    def _key(self, node: exp.Expression, items: list[tuple[str, Typed]], place: Place) -> str:
        position = _ordinal(node, len(items))
        value = items[position][1] if position is not None else self._column_or_alias(node, items, place)
        if not value.type.is_plain:
            raise OutsideSubset("GROUP BY of a nested column")
        return value.sql

    @staticmethod
    def _column_or_alias(node: exp.Expression, items: list[tuple[str, Typed]], place: Place) -> Typed:
        """A key of GROUP BY: columns first, names of the SELECT list behind them."""
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            own = Scope()
            own.sources, own.merged = place.scope.sources, place.scope.merged
            try:
                return own.resolve([node.name])
            except OutsideSubset:
                named = [value for name, value in items if name.lower() == node.name.lower()]
                if len(named) == 1:
                    return named[0]
                raise
        return place.lower(node)

    @staticmethod
    def _having_place(items: list[tuple[str, Typed]], place: Place) -> Place:
        """Names of the SELECT list can be used in HAVING, where they mean nothing else."""
        aliases: dict[str, Typed] = {}
        unclear: set[str] = set()
        for name, value in items:
            if not name:
                continue
            own = Scope()
            own.sources, own.merged = place.scope.sources, place.scope.merged
            try:
                is_same = own.resolve([name]).sql == value.sql
            except OutsideSubset:
                is_same = True
            if is_same and aliases.get(name.lower(), value).sql == value.sql:
                aliases[name.lower()] = value
            else:
                unclear.add(name.lower())
        return place.at(place.scope.overlay(aliases, frozenset(unclear)))

    def _order(
        self, node: exp.Select, items: list[tuple[str, Typed]], place: Place, *, is_distinct: bool
    ) -> str:
        order = node.args.get("order")
        if order is None:
            return ""
        only(order, frozenset({"expressions"}))
        aliases: dict[str, Typed] = {}
        twice = set()
        for name, value in items:
            if aliases.setdefault(name.lower(), value).sql != value.sql:
                twice.add(name.lower())
        aliases.pop("", None)
        named = place.at(place.scope.overlay(aliases, frozenset(twice)))
        texts = [value.sql for _, value in items]
        keys = []
        for each in order.expressions:
            position = _ordinal(each.this, len(items))
            if position is None:
                if each.this.find(exp.Window):
                    raise OutsideSubset("a window in ORDER BY")
                if each.this.find(exp.Subquery, exp.Exists) or (is_distinct and each.this.find(exp.AggFunc)):
                    # Spark has its own rules for which of these it takes.
                    raise OutsideSubset("ORDER BY of a subquery, or of an aggregate behind DISTINCT")
                value = named.lower(each.this)
                position = texts.index(value.sql) if value.sql in texts else None
            else:
                value = items[position][1]
            if not value.type.is_plain:
                raise OutsideSubset("ORDER BY of a nested column")
            if position is None and is_distinct:
                raise OutsideSubset("ORDER BY of what DISTINCT does not have")
            keys.append(order_key(each, value.sql if position is None else str(position + 1)))
        return f" ORDER BY {join_texts(', ', keys)}"


def rename(outputs: tuple[Output, ...], names: list[str]) -> tuple[Output, ...]:
    """Columns with other names, if there are any."""
    if not names:
        return outputs
    if len(names) != len(outputs):
        raise OutsideSubset("names for a different number of columns")
    return tuple(replace(each, name=name) for name, each in zip(names, outputs, strict=True))


def _without(star: exp.Star, items: list[tuple[str, Typed]]) -> list[tuple[str, Typed]]:
    """Columns of a star, without those of EXCEPT."""
    only(star, frozenset({"except_"}))
    dropped = star.args.get("except_") or []
    if any(not isinstance(each, exp.Column) or len(each.parts) != 1 for each in dropped):
        raise OutsideSubset("EXCEPT of a field")
    names = {each.name.lower() for each in dropped}
    return [(name, value) for name, value in items if name.lower() not in names]


def _ordinal(node: exp.Expression, count: int) -> int | None:
    """`ORDER BY 2`: a place."""
    if isinstance(node, exp.Literal) and not node.is_string:
        text = str(node.this)
        if text.isdigit() and 1 <= int(text) <= count:
            return int(text) - 1
        raise OutsideSubset("a number that is no column")
    return None


def _one_zero(value: Typed) -> Typed:
    """A key that rows are made one by: of both zeros Spark gives zero, DuckDB the one that it meets first."""
    return (
        replace(value, sql=f"({value.sql} + CAST(0 AS {value.type.duck}))")
        if value.type.is_floating
        else value
    )


def _with_types(query: LoweredQuery, outputs: list[Output], *, is_keyed: bool) -> str:
    """A side of a set operation. `is_keyed`: what is there twice may become one."""
    is_floating = any(each.type.is_floating for each in outputs)
    if [each.type for each in query.outputs] == [each.type for each in outputs] and not (
        is_keyed and is_floating
    ):
        return query.sql
    values = [
        Typed(f"x.o{i}", have.type).cast(want.type)
        for i, (have, want) in enumerate(zip(query.outputs, outputs, strict=True))
    ]
    columns = ", ".join(
        f"{(_one_zero(each) if is_keyed else each).sql} AS o{i}" for i, each in enumerate(values)
    )
    return f"SELECT {columns} FROM ({query.sql}) AS x"  # noqa: S608 - made here only


def _limits(node: exp.Expression) -> str:
    sql = ""
    for key, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        clause = node.args.get(key)
        if clause is None:
            continue
        only(clause, frozenset({"expression"}))
        number = clause.expression
        if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
            raise OutsideSubset(f"{word} that is no number")
        if int(str(number.this)) > INT_MAX:
            raise OutsideSubset(f"{word} beyond INT")
        sql += f" {word} {int(str(number.this))}"
    return sql


def lower_values(node: exp.Values, place: Place) -> LoweredQuery:
    """Rows of the statement itself."""
    rows = [
        [place.lower(value) for value in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    if len({len(row) for row in rows}) != 1:
        raise OutsideSubset("VALUES of different lengths")
    columns = [operators.unify(list(column), "VALUES") for column in zip(*rows, strict=True)]
    if any(column[0].type == t.NULL for column in columns):
        raise OutsideSubset("VALUES without a type")
    rows_sql = (f"({join_texts(', ', (each.sql for each in row))})" for row in zip(*columns, strict=True))
    names = ", ".join(f"o{i}" for i in range(len(columns)))
    outputs = tuple(
        Output(f"col{i + 1}", column[0].type, letters=max(each.letters for each in column))
        for i, column in enumerate(columns)
    )
    return LoweredQuery(f"SELECT {names} FROM (VALUES {join_texts(', ', rows_sql)}) AS v({names})", outputs)  # noqa: S608 - made here only
