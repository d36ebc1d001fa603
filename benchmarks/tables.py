"""Result tables for people: drawn on a terminal, Markdown everywhere else.

A maintainer must not break: the Markdown form is pasted into README.md as it is.
"""

import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table


def show(title: str, first: str, rows: Mapping[str, Mapping[str, str]]) -> None:
    """Print a table; `rows` maps a row's name to its cells by column."""
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    lines = [[name, *(cells.get(column, "") for column in columns)] for name, cells in rows.items()]
    if sys.stdout.isatty():
        table = Table(title=title, title_justify="left")
        table.add_column(first)
        for column in columns:
            table.add_column(column, justify="right")
        for line in lines:
            table.add_row(*line)
        Console().print(table)
    else:
        print(f"{title}\n\n{_markdown([first, *columns], lines)}\n")


def readable(value: float) -> str:
    """Three significant digits, without exponents."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def row(cells: Sequence[str]) -> str:
        first, *rest = (cell for cell in cells)
        padded = [
            first.ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)),
        ]
        return f"| {' | '.join(padded)} |"

    return "\n".join([row(head), row(rule), *map(row, lines)])
