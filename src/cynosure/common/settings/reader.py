"""Entries meet structs: names are resolved, values typed, defaults filled in.

Later sources win, entry by entry, also inside the tables of a `dict[str, Struct]`. Within one source the same
setting twice is an error, whether by an alias, by letter case or by a secret's two forms: there is no order
that could decide.
"""

import difflib
from collections.abc import Mapping, Sequence, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.common.settings.sources import Entry, Source
from cynosure.common.settings.values import (
    Unusable,
    describe,
    dict_value_type,
    parse_value,
    shape_of,
    unwrap_optional,
)

T = TypeVar("T", bound=Struct)

Aliases = Mapping[str, str | None]
"""Foreign dotted name (with `*` for a part that varies) → our dotted name.

`None` marks a name that is known but belongs to a room that this version does not have: it is refused
with that reason, because a setting that is silently ignored is worse than one that is refused."""


class _Target(NamedTuple):
    path: tuple[str, ...]
    annotation: Any
    is_file: bool = False
    """The entry names the file that holds a secret."""


class _Written(NamedTuple):
    values: Mapping[tuple[str, ...], Any]
    empty: Set[tuple[str, ...]]
    """Tables without anything in them. One of a dictionary exists all the same."""

    def list_names(self, path: tuple[str, ...]) -> list[str]:
        """Names of the tables below a dictionary, in the order they were written."""
        depth = len(path)
        found = (keys[depth] for keys in (*self.values, *self.empty) if keys[:depth] == path and keys != path)
        return list(dict.fromkeys(found))


def read_settings(root: type[T], sources: Sequence[Source], aliases: Aliases | None = None) -> T:
    """The settings that these sources give; what they leave out keeps its default."""
    values: dict[tuple[str, ...], Any] = {}
    empty: set[tuple[str, ...]] = set()
    for source in sources:
        places: dict[tuple[str, ...], str] = {}
        for entry in source:
            target = _resolve(root, _apply_alias(entry, aliases or {}))
            if isinstance(entry.value, dict) and not entry.value and _is_table(target.annotation):
                empty.add(target.path)
                continue
            if target.path in places:
                raise Misconfigured(
                    "A setting is given twice in one place",
                    key=".".join(target.path),
                    source=f"{places[target.path]} and {entry.where}",
                    fix="Remove one of them.",
                )
            places[target.path] = entry.where
            values[target.path] = _parse(target, entry)
    return _build(root, _Written(values, empty), ())


def _apply_alias(entry: Entry, aliases: Aliases) -> Entry:
    # Environment variables can hold neither dashes nor capitals, so neither may tell two names apart.
    name = _fold(".".join(entry.path))
    for pattern, ours in aliases.items():
        if not fnmatchcase(name, _fold(pattern)):
            continue
        if ours is None:
            raise Misconfigured(
                "This version does not have what the setting controls",
                key=pattern,
                source=entry.where,
                fix="Remove the setting.",
            )
        return entry._replace(path=tuple(ours.split(".")))
    return entry


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")


def _resolve(root: type[Struct], entry: Entry) -> _Target:
    annotation: Any = root
    for depth, key in enumerate(entry.path):
        if annotation is Secret and key == "file" and depth == len(entry.path) - 1:
            return _Target(entry.path[:-1], Secret, is_file=True)
        if (inner := dict_value_type(annotation)) is not None:
            annotation = unwrap_optional(inner)
            continue
        fields = {field.name: field.type for field in _fields(annotation)}
        if key not in fields:
            raise _unknown(entry, depth, fields)
        annotation = unwrap_optional(fields[key])
    return _Target(entry.path, annotation)


def _fields(annotation: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(annotation) if _is_struct(annotation) else ()


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Struct)


def _is_table(annotation: Any) -> bool:
    return _is_struct(annotation) or dict_value_type(annotation) is not None


def _unknown(entry: Entry, depth: int, fields: Mapping[str, Any]) -> Misconfigured:
    above = entry.path[:depth]
    key = ".".join(entry.path[: depth + 1])
    if not fields:
        fix = f"Give {'.'.join(above)} a single value; it has no parts."
    elif close := difflib.get_close_matches(_fold(entry.path[depth]), fields, n=1, cutoff=0.5):
        fix = f"Did you mean {'.'.join((*above, close[0]))}? Otherwise remove it."
    else:
        fix = f"Use one of {', '.join('.'.join((*above, name)) for name in sorted(fields))}."
    return Misconfigured("There is no such setting", key=key, source=entry.where, fix=fix)


def _parse(target: _Target, entry: Entry) -> Any:
    key = ".".join(target.path)
    if _is_table(target.annotation):
        raise _wrong_kind(key, entry, "a table", f"Write a table [{key}] with settings of its own.")
    try:
        if target.is_file:
            return Secret.from_file(parse_value(Path, entry.value, is_text=entry.is_text))
        return parse_value(target.annotation, entry.value, is_text=entry.is_text)
    except Unusable as unusable:
        # Without `from`: the cause would quote the value in a traceback.
        raise _wrong_kind(key, entry, describe(target.annotation), str(unusable)) from None


def _wrong_kind(key: str, entry: Entry, expected: str, fix: str) -> Misconfigured:
    return Misconfigured(
        "A setting has the wrong kind of value",
        key=key,
        source=entry.where,
        got=shape_of(entry.value),
        expected=expected,
        fix=fix,
    )


def _build(struct: type[T], written: _Written, above: tuple[str, ...]) -> T:
    given: dict[str, Any] = {}
    values = written.values
    for field in msgspec.structs.fields(struct):
        path = (*above, field.name)
        annotation = unwrap_optional(field.type)
        inner = dict_value_type(annotation)
        if path in values:
            given[field.name] = values[path]
        elif _is_struct(annotation):
            given[field.name] = _build(annotation, written, path)
        elif inner is not None and _is_struct(inner):
            given[field.name] = {
                name: _build(inner, written, (*path, name)) for name in written.list_names(path)
            }
        elif entries := {keys[-1]: value for keys, value in values.items() if keys[:-1] == path}:
            given[field.name] = entries
        elif field.required:
            raise Misconfigured(
                "A required setting is missing", key=".".join(path), fix=f"Write {describe(annotation)}."
            )
    return struct(**given)
