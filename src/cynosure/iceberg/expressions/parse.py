"""JSON into a filter: the current form (`left`, `right`, `child`) and the older one (`term`, `value`).

A maintainer must not break: whatever the bytes, this answers with an expression or with `BadInput`. A field
that the protocol does not know is refused, not skipped: it could narrow the filter.
"""

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    ICEBERG_FUNCTIONS,
    TRUE,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    Function,
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.single_value import read_value
from cynosure.iceberg.types import MAX_INT, Type, is_primitive, parse_type

MAX_DEPTH: Final = 400
"""Below what the JSON decoder itself survives on the smallest stack that we run on."""
MAX_NODES: Final = 20_000
MAX_CONSTANTS: Final = 200_000
"""In all sets together. They are cheap, and engines push large `in` lists."""

TESTS: Final = frozenset({"is-null", "not-null", "is-nan", "not-nan"})
COMPARISONS: Final = frozenset(
    {"lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with"}
)
MEMBERSHIPS: Final = frozenset({"in", "not-in"})
PREDICATES: Final = frozenset({"true", "false", "and", "or", "not"}) | TESTS | COMPARISONS | MEMBERSHIPS

_TRANSFORM = re.compile(
    r"(identity|year|month|day|hour)|(bucket|truncate)\[(\d{1,10})\]", re.ASCII | re.IGNORECASE
)


def parse_expression(json: object, *, field: str = "filter") -> Expression:
    """A filter from its JSON, as bytes or already decoded. `field` is its name in errors."""
    if isinstance(json, bytes | bytearray | memoryview | msgspec.Raw):
        json = _decode(bytes(json), field)
    expression: Expression = fold(_Item(json, _read_predicate, None, field, 0), _Reader())
    return expression


Expansion = tuple[Sequence["_Item"], Join[Any]]


class _Item(Struct, frozen=True):
    """A piece of JSON, what it must be, and where it is."""

    json: Any
    read: Callable[["_Item", "_Reader"], Expansion]
    parent: "_Item | None"
    key: str
    depth: int

    def at(self, key: str, read: Callable[["_Item", "_Reader"], Expansion]) -> "_Item":
        return _Item(self.json[key], read, self, f".{key}", self.depth + 1)

    def inside(self, key: str, index: int, read: Callable[["_Item", "_Reader"], Expansion]) -> "_Item":
        return _Item(self.json[key][index], read, self, f".{key}[{index}]", self.depth + 1)

    @property
    def path(self) -> str:
        keys: list[str] = []
        item: _Item | None = self
        while item is not None:
            keys.append(item.key)
            item = item.parent
        return "".join(reversed(keys))


class _Reader:
    """Counts what was read, so that a small request cannot become a large tree."""

    def __init__(self) -> None:
        self._nodes = 0
        self._constants = 0

    def __call__(self, item: _Item) -> Expansion:
        self._nodes += 1
        if self._nodes > MAX_NODES or item.depth > MAX_DEPTH:
            raise TooLarge(
                "The expression is too large",
                field=item.path[:200],
                fix="Nest less, or use one `in` for many values.",
                max_depth=MAX_DEPTH,
                max_nodes=MAX_NODES,
            )
        return item.read(item, self)

    def count_constants(self, count: int, item: _Item) -> None:
        self._constants += count
        if self._constants > MAX_CONSTANTS:
            raise TooLarge(
                "The expression has too many constants",
                field=item.path,
                fix="Filter by a range, or read in several scans.",
                max_constants=MAX_CONSTANTS,
            )


def _decode(json: bytes, field: str) -> object:
    try:
        return msgspec.json.decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput("This is not JSON", field=field, fix="Send JSON in UTF-8.") from error
    except RecursionError as error:
        raise TooLarge(
            "The expression is too large", field=field, fix="Nest less.", max_depth=MAX_DEPTH
        ) from error


# Predicates.


def _read_predicate(item: _Item, reader: _Reader) -> Expansion:
    json = item.json
    if isinstance(json, bool):
        return _leaf(TRUE if json else FALSE)
    if not isinstance(json, dict):
        _refuse("A predicate is true, false or an object", item, "Send a predicate.")
    op = json.get("type")
    if not isinstance(op, str):
        _refuse("A predicate needs a type", item, "Send the type of the predicate.", key="type")
    if op in ("and", "or"):
        _check_keys(item, ("left", "right"))
        node = And if op == "and" else Or
        return (
            [item.at("left", _read_predicate), item.at("right", _read_predicate)],
            lambda parts: node(*parts),
        )
    if op == "not":
        _check_keys(item, ("child",))
        return [item.at("child", _read_predicate)], lambda parts: Not(*parts)
    if op in TESTS:
        return [_read_operand(item)], lambda parts: Unary(op, *parts)  # type: ignore[arg-type]
    if op in COMPARISONS:
        return _read_operands(item), lambda parts: Comparison(op, *parts)  # type: ignore[arg-type]
    if op in MEMBERSHIPS:
        values = _read_constants(item, reader)
        return [_read_operand(item, "values")], lambda parts: Membership(op, parts[0], values)  # type: ignore[arg-type]
    if op in ("true", "false"):
        _check_keys(item, ())
        return _leaf(TRUE if op == "true" else FALSE)
    if op == "literal" and isinstance(json.get("value"), bool):
        _check_keys(item, ("value",))
        return _leaf(TRUE if json["value"] else FALSE)
    _refuse("No such predicate", item, "Send a predicate of the Iceberg REST protocol.", key="type", type=op)


def _read_operand(item: _Item, *others: str) -> _Item:
    if "term" in item.json:
        _check_keys(item, ("term", *others))
        return item.at("term", _read_term)
    _check_keys(item, ("child", *others))
    return item.at("child", _read_value)


def _read_operands(item: _Item) -> list[_Item]:
    if "term" in item.json:
        _check_keys(item, ("term", "value"))
        return [item.at("term", _read_term), item.at("value", _read_literal)]
    _check_keys(item, ("left", "right"))
    return [item.at("left", _read_value), item.at("right", _read_value)]


# Values.


def _read_value(item: _Item, reader: _Reader) -> Expansion:
    json = item.json
    if not isinstance(json, dict):
        return _leaf(_read_constant(json, item))
    kind = json.get("type")
    if kind == "literal":
        return _leaf(_read_constant(json, item))
    if kind == "reference":
        return _leaf(_read_reference(item))
    if kind == "apply":
        return _read_apply(item)
    _refuse("A value is a literal, a reference or a function", item, "Send one of the three.", key="type")


def _read_literal(item: _Item, reader: _Reader) -> Expansion:
    return _leaf(_read_constant(item.json, item))


def _read_term(item: _Item, reader: _Reader) -> Expansion:
    """The older form: bare text is a column, not a literal."""
    json = item.json
    if isinstance(json, str):
        return _leaf(NamedReference(json))
    if not isinstance(json, dict) or json.get("type") not in ("transform", "reference", "apply"):
        _refuse("A term is a column or a transform of one", item, "Send a column's name.")
    if json["type"] != "transform":
        return _read_value(item, reader)
    _check_keys(item, ("transform", "term"))
    text = json["transform"]
    match = _TRANSFORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        _refuse("No such transform", item, "Send a partition transform of Iceberg.", key="transform")
    name, parameter = (match[1] or match[2]).lower(), match[3]
    first = () if parameter is None else (Constant(int(parameter)),)
    function = Function((name,), ICEBERG_FUNCTIONS)
    return [item.at("term", _read_term)], lambda parts: Apply(function, (*first, *parts))


def _read_reference(item: _Item) -> NamedReference | IdReference:
    json = item.json
    if "id" in json:
        _check_keys(item, ("id",))
        if type(json["id"]) is not int or not 0 <= json["id"] <= MAX_INT:
            _refuse("A field id is a 32-bit integer", item, "Send the id of a field.", key="id")
        return IdReference(json["id"])
    key = "name" if "name" in json else "term"
    _check_keys(item, (key,))
    if not isinstance(json[key], str):
        _refuse("A column's name is text", item, "Send the name.", key=key)
    return NamedReference(json[key])


def _read_apply(item: _Item) -> Expansion:
    _check_keys(item, ("function", "arguments"))
    function = _read_function(item)
    arguments = item.json["arguments"]
    if not isinstance(arguments, list):
        _refuse("The arguments of a function are a list", item, "Send a list.", key="arguments")
    kids = [item.inside("arguments", at, _read_argument) for at in range(len(arguments))]
    return kids, lambda parts: Apply(function, tuple(parts))


def _read_argument(item: _Item, reader: _Reader) -> Expansion:
    kind = item.json.get("type") if isinstance(item.json, dict) else None
    return (_read_predicate if isinstance(kind, str) and kind in PREDICATES else _read_value)(item, reader)


def _read_function(item: _Item) -> Function:
    given = item.json["function"]
    catalog = None
    if isinstance(given, dict):
        catalog, identifier = given.get("catalog"), given.get("identifier")
        is_known = given.keys() <= {"catalog", "identifier"}
    else:
        identifier, is_known = ([given] if isinstance(given, str) else given), True
    if (
        not is_known
        or not isinstance(identifier, list)
        or not identifier
        or not all(isinstance(part, str) and part for part in identifier)
        or not (catalog is None or isinstance(catalog, str))
    ):
        _refuse("A function is a name, or a list of names", item, "Send the identifier.", key="function")
    return Function(tuple(identifier), catalog)


def _read_constants(item: _Item, reader: _Reader) -> tuple[Constant, ...]:
    given = item.json.get("values")
    type_: Type | None = None
    if isinstance(given, dict):
        if given.keys() != {"type", "values", "data-type"} or given["type"] != "literals":
            _refuse("A typed set has type, values and data-type", item, "Send all three.", key="values")
        type_ = _read_data_type(given, item)
        given = given["values"]
    if not isinstance(given, list):
        _refuse("The values of a set are a list", item, "Send a list of literals.", key="values")
    reader.count_constants(len(given), item)
    if type_ is None:
        return tuple(_read_constant(one, item, f"values[{at}]") for at, one in enumerate(given))
    return tuple(_typed(one, type_, item, f"values[{at}]") for at, one in enumerate(given))


def _read_constant(json: Any, item: _Item, key: str | None = None) -> Constant:
    if isinstance(json, dict):
        if json.get("type") != "literal" or "value" not in json or json.keys() - _LITERAL_KEYS:
            _refuse("A literal has a value and may have a data-type", item, "Send a literal.", key=key)
        if "data-type" in json:
            return _typed(json["value"], _read_data_type(json, item), item, key)
        json = json["value"]
    is_finite = not isinstance(json, float) or math.isfinite(json)
    if not isinstance(json, bool | int | float | str) or not is_finite:
        _refuse("A constant is text, a number or true or false", item, "Use is-null or is-nan.", key=key)
    return Constant(json)


_LITERAL_KEYS: Final = frozenset({"type", "value", "data-type"})


def _typed(json: Any, type_: Type, item: _Item, key: str | None) -> Constant:
    read_value(type_, json, field=f"{item.path}.{key}" if key else item.path)
    return Constant(json, type_)


def _read_data_type(json: dict[str, Any], item: _Item) -> Type:
    type_ = parse_type(json["data-type"], field=f"{item.path}.data-type")
    if not is_primitive(type_):
        _refuse("A literal has a primitive type", item, "Send a primitive type.", key="data-type")
    return type_


def _leaf(node: object) -> Expansion:
    return (), lambda _: node


def _check_keys(item: _Item, keys: Collection[str]) -> None:
    wanted = {"type", *keys}
    for key in keys:
        if key not in item.json:
            _refuse("A part of the expression is missing", item, "Send every part of it.", key=key)
    for key in item.json:
        if key not in wanted:
            _refuse("No such part of an expression", item, "Leave it out.", key=str(key)[:100])


def _refuse(message: str, item: _Item, fix: str, *, key: str | None = None, **details: Any) -> NoReturn:
    path = item.path if key is None else f"{item.path}.{key}"
    raise BadInput(message, field=path, fix=fix, **details)
