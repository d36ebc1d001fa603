"""Random filters as JSON in both forms and for PyIceberg, and what they hold for.

A maintainer must not break: `holds` reads JSON as the specification says and shares nothing with the code
under test but the text forms of single values.
"""

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyiceberg.expressions as theirs

from cynosure.iceberg.single_value import read_value, write_value
from cynosure.iceberg.transforms import result_type
from cynosure.iceberg.types import parse_type
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.shape import Leaf, Row
from tests.planning_oracle.values import (
    next_to,
    random_value,
    their_literal,
    their_transform,
    transforms_of,
    type_of,
)

_THEIRS: dict[str, Any] = {
    "lt": theirs.LessThan,
    "lt-eq": theirs.LessThanOrEqual,
    "gt": theirs.GreaterThan,
    "gt-eq": theirs.GreaterThanOrEqual,
    "eq": theirs.EqualTo,
    "not-eq": theirs.NotEqualTo,
    "starts-with": theirs.StartsWith,
    "not-starts-with": theirs.NotStartsWith,
    "is-null": theirs.IsNull,
    "not-null": theirs.NotNull,
    "is-nan": theirs.IsNaN,
    "not-nan": theirs.NotNaN,
    "in": theirs.In,
    "not-in": theirs.NotIn,
}


@dataclass(frozen=True)
class Filter:
    """A filter in both worlds."""

    json: Any
    theirs: Any
    """None when PyIceberg has no words for it."""
    is_plain: bool = True
    """Whether PyIceberg plans it exactly as we do."""
    has_set: bool = False
    """A set: PyIceberg tests its least and greatest value only, so it may keep more files."""


class Filters:
    """Makes filters on the columns of a schema."""

    def __init__(
        self, table: RandomTable, leaves: list[Leaf], rng: random.Random, *, is_case_sensitive: bool = True
    ) -> None:
        sources = {field.source_id for spec in table.shape.specs for field in spec.fields}
        self._rows = [row for rows in table.rows.values() for row in rows]
        self._partitioned = [one for one in leaves if one.id in sources] or leaves
        self._leaves = leaves
        self._rng = rng
        self._is_plain = table.is_plain
        self._is_case_sensitive = is_case_sensitive

    def make(self, depth: int = 2) -> Filter:
        kind = self._rng.random()
        if depth and kind < 0.55:
            left, right = self.make(depth - 1), self.make(depth - 1)
            op, class_ = ("and", theirs.And) if kind < 0.3 else ("or", theirs.Or)
            both = None if None in (left.theirs, right.theirs) else class_(left.theirs, right.theirs)
            json = {"type": op, "left": left.json, "right": right.json}
            return Filter(json, both, left.is_plain and right.is_plain, left.has_set or right.has_set)
        if kind < 0.65 and not self._is_plain:
            child = self.make(depth - 1) if depth else self._leaf()
            return Filter(
                {"type": "not", "child": child.json},
                None if child.theirs is None else theirs.Not(child.theirs),
                is_plain=False,
            )
        if kind < 0.72 and not self._is_plain:
            return self._without_words()
        return self._leaf()

    def _leaf(self) -> Filter:
        rng, leaf = self._rng, self._choose()
        kind = rng.random()
        is_floating = leaf.type in ("float", "double")
        if kind < 0.2:
            op = rng.choice(["is-null", "not-null", *(["is-nan", "not-nan"] if is_floating else [])])
            return Filter(self._json(op, leaf), _THEIRS[op](self._name(leaf)))
        if kind < 0.35:
            # Both zeros are one value of a set, here as in the code under test; in Java they would be two.
            values = list(dict.fromkeys(self._value(leaf) for _ in range(3)))
            op = rng.choice(["in", "not-in"])
            literals = {their_literal(leaf.type, value) for value in values}
            return Filter(
                self._json(op, leaf, values=values),
                _THEIRS[op](self._name(leaf), literals),
                has_set=len(values) > 1,
            )
        ops = ["eq", "not-eq"] if leaf.type == "boolean" else ["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq"]
        if leaf.type == "string":
            ops += ["starts-with"] * 3 + ([] if self._is_plain else ["not-starts-with"] * 2)
        op = rng.choice(ops)
        value = self._value(leaf)
        if op == "starts-with":
            value = value or "a"  # PyIceberg does not see that everything starts with nothing
        return Filter(
            self._json(op, leaf, value=value),
            _THEIRS[op](self._name(leaf), their_literal(leaf.type, value)),
            is_plain=op != "not-starts-with",
        )

    def _without_words(self) -> Filter:
        """What PyIceberg's expressions do not have: transforms, and columns beside each other."""
        rng, leaf = self._rng, self._choose()
        transform = rng.choice(transforms_of(leaf.type))
        made = their_transform(transform, leaf.type)(self._value(leaf))
        value = write_value(result_type(transform, type_of(leaf.type)), made)
        op = rng.choice(["eq", "not-eq"] if leaf.type == "boolean" else ["eq", "lt", "gt-eq", "not-eq"])
        others = [one for one in self._leaves if one.type == leaf.type and one.id != leaf.id]
        if others and rng.random() < 0.5:
            right = {"type": "reference", "id": rng.choice(others).id}
            json: Any = {"type": op, "left": {"type": "reference", "id": leaf.id}, "right": right}
        else:
            term = {"type": "transform", "transform": transform, "term": self._name(leaf)}
            json = {"type": op, "term": term, "value": value}
        return Filter(json, None, is_plain=False)

    def _choose(self) -> Leaf:
        return self._rng.choice(self._leaves if self._rng.random() < 0.5 else self._partitioned)

    def _value(self, leaf: Leaf) -> Any:
        """One of a row, or next to it; else any."""
        value = self._rng.choice(self._rows).get(leaf.id) if self._rows else None
        if (
            value is None
            or (isinstance(value, float) and not math.isfinite(value))
            or self._rng.random() < 0.3
        ):
            return random_value(leaf.type, self._rng, is_plain=self._is_plain)
        return next_to(leaf.type, value, self._rng)

    def _name(self, leaf: Leaf) -> str:
        return leaf.path if self._is_case_sensitive else leaf.path.swapcase()

    def _json(self, op: str, leaf: Leaf, *, value: Any = None, values: list[Any] | None = None) -> Any:
        rng, type_ = self._rng, type_of(leaf.type)
        is_older = rng.random() < 0.5
        key = "term" if is_older else "child"
        column: Any = self._name(leaf)
        if not is_older:
            by_name = {"type": "reference", "name": column}
            column = rng.choice([by_name, {"type": "reference", "id": leaf.id}])
        if values is not None:
            json = [write_value(type_, one) for one in values]
            if not is_older and rng.random() < 0.5:
                return {
                    "type": op,
                    key: column,
                    "values": {"type": "literals", "values": json, "data-type": leaf.type},
                }
            return {"type": op, key: column, "values": json}
        if value is None:
            return {"type": op, key: column}
        literal: Any = write_value(type_, value)
        if is_older:
            return {"type": op, "term": column, "value": literal}
        if rng.random() < 0.5:
            literal = {"type": "literal", "value": literal, "data-type": leaf.type}
        return {"type": op, "left": column, "right": literal}


# What a filter holds for.

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "lt-eq": operator.le,
    "gt": operator.gt,
    "gt-eq": operator.ge,
    "eq": operator.eq,
}


class Reader:
    """Evaluates a filter on rows, naively, in one of the two orders of numbers that engines have.

    `is_total`: as Java does, NaN is above all numbers and -0.0 below 0.0. Else as IEEE 754 has it.
    """

    def __init__(self, leaves: list[Leaf], *, is_total: bool) -> None:
        self._by_name = {one.path.lower(): one for one in leaves}
        self._by_id = {one.id: one for one in leaves}
        self._is_total = is_total

    def holds(self, json: Any, row: Row) -> bool:
        if isinstance(json, bool):
            return json
        op: str = json["type"]
        match op:
            case "and":
                return self.holds(json["left"], row) and self.holds(json["right"], row)
            case "or":
                return self.holds(json["left"], row) or self.holds(json["right"], row)
            case "not":
                return not self.holds(json["child"], row)
        term = json.get("term", json.get("child", json.get("left")))
        value, type_ = self._value(term, row)
        match op:
            case "is-null" | "not-null":
                return (value is None) == (op == "is-null")
            case "is-nan" | "not-nan":
                is_nan = isinstance(value, float) and math.isnan(value)
                return is_nan == (op == "is-nan")
            case "in" | "not-in":
                given = json["values"]
                some = given["values"] if isinstance(given, dict) else given
                found = any(self._compare("eq", value, self._literal(one, type_)) for one in some)
                return found == (op == "in")
        other = json.get("value", json.get("right"))
        if isinstance(other, dict) and other["type"] in ("reference", "apply", "transform"):
            wanted = self._value(other, row)[0]
        else:
            wanted = self._literal(other, type_)
        if op.startswith("not-"):
            return not self._compare(op.removeprefix("not-"), value, wanted)
        return self._compare(op, value, wanted)

    def _compare(self, op: str, one: Any, other: Any) -> bool:
        if one is None or other is None:
            return False
        if op == "starts-with":
            return bool(one.startswith(other))
        if self._is_total and isinstance(one, float):
            one, other = _total(one), _total(other)
        return _ORDER[op](one, other)

    def _value(self, term: Any, row: Row) -> tuple[Any, str]:
        if isinstance(term, str):
            term = {"type": "reference", "name": term}
        if term["type"] == "reference":
            leaf = self._by_id[term["id"]] if "id" in term else self._by_name[term["name"].lower()]
            return row.get(leaf.id), leaf.type
        if term["type"] == "transform":
            transform, inner = term["transform"], term["term"]
        else:
            function = term["function"]
            name = function["identifier"][-1] if isinstance(function, dict) else function
            *width, inner = term["arguments"]
            transform = f"{name}[{width[0]}]" if width else name
        value, type_ = self._value(inner, row)
        return their_transform(transform, type_)(value), str(result_type(transform, parse_type(type_)))

    def _literal(self, json: Any, type_: str) -> Any:
        value = json["value"] if isinstance(json, dict) else json
        return read_value(parse_type(type_), value, field="filter")


def _total(value: float) -> tuple[int, float, float]:
    return (1, 0.0, 0.0) if math.isnan(value) else (0, value, math.copysign(1, value))
