"""Rows for people: a table, one value per line, or Markdown.

A maintainer must not break: NULL is never shown as a text that a value could be, and no text of a row reaches
the terminal unescaped.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

import msgspec
from rich.cells import cell_len

from cynosure.cli.output import harmless
from cynosure.client.query import Column

NULL: Final = "NULL"
_DIM, _END = "\x1b[2m", "\x1b[0m"
_TIME: Final = re.compile(r"(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.(\d+)(Z?)", re.ASCII)
_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

Rows = list[Sequence[Any]]


def show(value: Any, *, is_escaped: bool = True) -> str:
    """A value on one line."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = f"'{value}'" if value == NULL else value
        return harmless(text) if is_escaped else text
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
        return harmless(text) if is_escaped else text
    return str(value)


def show_cell(value: Any, type_: str) -> str:
    """A value for people: times without what every reader skips."""
    if type_.startswith("timestamp") and isinstance(value, str) and (found := _TIME.fullmatch(value)):
        fraction = found[3].rstrip("0")
        return f"{found[1]} {found[2]}{'.' if fraction else ''}{fraction}{found[4]}"
    return show(value)


def write_table(to: TextIO, columns: Sequence[Column], rows: Rows) -> None:
    """Under headings; one value per line where a terminal is too narrow."""
    types = [each.type for each in columns]
    cells = [[show_cell(*each) for each in zip(row, types, strict=True)] for row in rows]
    heads = [harmless(each.name) for each in columns]
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    is_terminal = to.isatty()
    if is_terminal and sum(widths) + 3 * len(widths) + 1 > shutil.get_terminal_size().columns:
        write_vertical(to, columns, rows)
        return
    is_number = [each.type.startswith(_NUMBERS) for each in columns]
    to.write(_line([_pad(head, width, False) for head, width in zip(heads, widths, strict=True)]))
    to.write(f"-{'-+-'.join('-' * width for width in widths)}-\n")
    for row, shown in zip(rows, cells, strict=True):
        padded = (_pad(*each) for each in zip(shown, widths, is_number, strict=True))
        to.write(_line([_dim(text, value, is_terminal) for text, value in zip(padded, row, strict=True)]))


def write_vertical(
    to: TextIO, columns: Sequence[Column], rows: Iterable[Sequence[Any]], first: int = 1
) -> None:
    """One value per line."""
    heads = [harmless(each.name) for each in columns]
    width = max(map(cell_len, heads), default=0)
    is_terminal = to.isatty()
    for number, row in enumerate(rows, first):
        to.write(f"-[ {number} ]{'-' * max(1, width - len(str(number)))}\n")
        for head, column, value in zip(heads, columns, row, strict=True):
            shown = _dim(show_cell(value, column.type), value, is_terminal)
            to.write(f"{_pad(head, width, False)} | {shown}\n")


def write_markdown_head(to: TextIO, columns: Sequence[Column]) -> None:
    """The first two lines of a Markdown table."""
    to.write(_markdown(each.name for each in columns))
    to.write(_markdown("---:" if each.type.startswith(_NUMBERS) else "---" for each in columns))


def write_markdown_rows(to: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Further lines."""
    for row in rows:
        to.write(_markdown(show(value) for value in row))


def _markdown(cells: Iterable[str]) -> str:
    escaped = (harmless(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def _line(cells: Sequence[str]) -> str:
    return f" {' | '.join(cells)}".rstrip() + "\n"


def _pad(text: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if is_number else text + blanks


def _dim(text: str, value: Any, is_terminal: bool) -> str:
    return f"{_DIM}{text}{_END}" if value is None and is_terminal else text
