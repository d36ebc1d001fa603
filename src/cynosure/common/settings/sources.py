"""Where settings are written: `cynosure.toml`, the environment, the command line.

Every entry knows its place (file and line, variable name, flag), because an error that cannot say
where a wrong value stands costs its reader an hour.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cynosure.common.errors import Misconfigured

PREFIX = "CYNOSURE_"


class Entry(NamedTuple):
    """One written value."""

    path: tuple[str, ...]
    value: Any
    where: str
    is_text: bool
    """The source has only text, so numbers and booleans come as text too."""


Source = list[Entry]
"""All entries of one place. Entries of a later source win over those of an earlier one."""


def read_file(path: Path) -> Source:
    """Read a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(
            "The settings file cannot be read",
            file=str(path),
            reason=type(error).__name__,
            fix="Check that the file exists and is readable, UTF-8 encoded text.",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(
            "The settings file is not TOML",
            file=str(path),
            # The parser's own text gives line and column; it quotes single characters at most.
            reason=str(error),
            fix="Correct the line that is named.",
        ) from error
    lines = _key_lines(text)
    return [
        Entry(keys, value, _place(path, lines, keys), is_text=False) for keys, value in _flatten(document, ())
    ]


def read_environment(environment: Mapping[str, str], rooms: frozenset[str]) -> Source:
    """Read `CYNOSURE_ROOM__KEY`. Variables without `__` are not settings (`CYNOSURE_CONFIG`).

    `rooms` are the top-level names, to catch `CYNOSURE_SERVER_PORT`, which would be ignored otherwise.
    """
    entries = []
    for name, value in sorted(environment.items()):
        if not name.upper().startswith(PREFIX):
            continue
        keys = name[len(PREFIX) :].lower().split("__")
        if len(keys) == 1:
            room = keys[0].partition("_")[0]
            if room in rooms:
                raise Misconfigured(
                    "An environment variable looks like a setting but is none",
                    variable=name,
                    fix=f"Put two underscores after the room: {PREFIX}{room.upper()}__KEY.",
                )
            continue
        entries.append(Entry(tuple(keys), value, name, is_text=True))
    return entries


def read_overrides(values: Mapping[str, Any]) -> Source:
    """Values from command line flags, by dotted name (`server.port`). `None` means "flag not given"."""
    return [
        Entry(tuple(name.split(".")), value, "command line", is_text=True)
        for name, value in values.items()
        if value is not None
    ]


def _flatten(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        keys = (*above, key)
        # An empty table is an entry of its own, so that a misspelt one is found.
        if isinstance(value, dict) and value:
            yield from _flatten(value, keys)
        else:
            yield keys, value


_HEADER = re.compile(r"\s*(\[[^\[].*\])\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+|\s*\.\s*)+)\s*=""")


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line of each key, by reading headers and keys line by line.

    Best effort: `tomllib` keeps no positions. Lines inside multi-line strings may add keys that do not
    exist, which nobody asks for.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _keys_of(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_keys_of(f"{key[1]} = 0")), number)
    return lines


def _keys_of(fragment: str) -> tuple[str, ...]:
    try:
        value: Any = tomllib.loads(fragment)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)


def _place(path: Path, lines: Mapping[tuple[str, ...], int], keys: tuple[str, ...]) -> str:
    # A key inside an inline table has no line of its own; its table has.
    for length in range(len(keys), 0, -1):
        if line := lines.get(keys[:length]):
            return f"{path}:{line}"
    return str(path)
