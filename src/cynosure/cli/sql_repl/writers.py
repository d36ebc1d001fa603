"""Rows into a file or onto standard output, page by page.

    csv, tsv      with headings; NULL is nothing, an empty text is ""
    json, jsonl   objects; columns of one name are numbered: n, n_2
    arrow         one Arrow IPC stream
    table, vertical, markdown   for people (`tables.py`)

A maintainer must not break: whatever ends a statement, what was written before is whole lines, and a format
for programs is never mixed with words for people.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

import msgspec

from cynosure.cli.sql_repl import tables
from cynosure.client.query import Column
from cynosure.common.errors import BadInput

FORMATS: Final = ("table", "vertical", "csv", "tsv", "json", "jsonl", "markdown", "arrow")
_encode = msgspec.json.Encoder().encode


class Writer(Protocol):
    """Gets the rows of one statement."""

    def begin(self, columns: Sequence[Column]) -> None:
        """The columns are known."""
        ...

    def add(self, rows: list[Sequence[Any]]) -> bool:
        """Some rows. False: no more of them are wanted."""
        ...

    def end(self) -> None:
        """That was all."""
        ...


class TableWriter:
    """Keeps the rows until their widths are known: cut after `max_rows` (0: never)."""

    def __init__(self, to: TextIO, max_rows: int) -> None:
        self._to = to
        self._max_rows = max_rows
        self._columns: Sequence[Column] = ()
        self._rows: list[Sequence[Any]] = []
        self.is_cut = False

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""
        self._columns = columns

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        self._rows += rows
        if self._max_rows and len(self._rows) > self._max_rows:
            self.is_cut = True
            del self._rows[self._max_rows :]
        return not self.is_cut

    def end(self) -> None:  # noqa: D102
        tables.write_table(self._to, self._columns, self._rows)


class VerticalWriter:
    """One value per line."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._columns: Sequence[Column] = ()
        self._count = 0

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""
        self._columns = columns

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        tables.write_vertical(self._to, self._columns, rows, self._count + 1)
        self._count += len(rows)
        return True

    def end(self) -> None:  # noqa: D102
        return


class MarkdownWriter:
    """A table for documents."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""
        tables.write_markdown_head(self._to, columns)

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        tables.write_markdown_rows(self._to, rows)
        return True

    def end(self) -> None:  # noqa: D102
        return


class PlainWriter:
    """Lines of text as they are: what EXPLAIN and SHOW CREATE TABLE answer."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        for row in rows:
            for line in str(row[0] if row and row[0] is not None else "").split("\n"):
                self._to.write(f"{tables.show(line) if line else ''}\n")
        return True

    def end(self) -> None:  # noqa: D102
        return


class SeparatedWriter:
    """CSV (RFC 4180), or values between tabs."""

    def __init__(self, to: TextIO, separator: str) -> None:
        self._to = to
        self._separator = separator
        self._special = frozenset(f'{separator}"\r\n')

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""
        self._write([each.name for each in columns])

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        for row in rows:
            self._write(row)
        return True

    def end(self) -> None:  # noqa: D102
        return

    def _write(self, values: Sequence[Any]) -> None:
        self._to.write(f"{self._separator.join(map(self._quote, values))}\n")

    def _quote(self, value: Any) -> str:
        if value is None:
            return ""
        text = value if isinstance(value, str) else tables.show(value, is_escaped=False)
        if text and not self._special.intersection(text):
            return text
        doubled = text.replace('"', '""')
        return f'"{doubled}"'


class JsonWriter:
    """One array of objects, or one object per line."""

    def __init__(self, to: TextIO, *, is_lines: bool) -> None:
        self._to = to
        self._is_lines = is_lines
        self._names: list[str] = []
        self._is_first = True

    def begin(self, columns: Sequence[Column]) -> None:
        """See `Writer`; also below."""
        for each in columns:
            name, number = each.name, 2
            while name in self._names:
                name, number = f"{each.name}_{number}", number + 1
            self._names.append(name)
        if not self._is_lines:
            self._to.write("[")

    def add(self, rows: list[Sequence[Any]]) -> bool:  # noqa: D102
        for row in rows:
            if not self._is_lines:
                self._to.write("\n" if self._is_first else ",\n")
            self._is_first = False
            self._to.write(_encode(dict(zip(self._names, row, strict=True))).decode())
            if self._is_lines:
                self._to.write("\n")
        return True

    def end(self) -> None:  # noqa: D102
        if not self._is_lines:
            self._to.write("]\n" if self._is_first else "\n]\n")


def make_writer(name: str, to: TextIO, *, max_rows: int, is_text: bool = False) -> Writer:
    """The writer of a format; `is_text` for answers that are lines of text, where people read them."""
    if is_text and name in ("table", "vertical"):
        return PlainWriter(to)
    match name:
        case "table":
            return TableWriter(to, max_rows)
        case "vertical":
            return VerticalWriter(to)
        case "markdown":
            return MarkdownWriter(to)
        case "csv":
            return SeparatedWriter(to, ",")
        case "tsv":
            return SeparatedWriter(to, "\t")
        case "json" | "jsonl":
            return JsonWriter(to, is_lines=name == "jsonl")
    raise _unknown(name)


def check_format(name: str, *, field: str = "--format") -> str:
    """The name, if there is such a format."""
    if name not in FORMATS:
        raise _unknown(name, field)
    return name


@contextmanager
def open_output(path: Path | None, standard: TextIO) -> Iterator[TextIO]:
    """Where rows go: a new file, or standard output."""
    if path is None:
        yield standard
        return
    try:
        file = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise BadInput(
            "The file cannot be written",
            field="--output",
            fix="Name a file in a directory that you can write to.",
            reason=error.strerror or type(error).__name__,
        ) from error
    with file:
        yield file


def _unknown(name: str, field: str = "--format") -> BadInput:
    return BadInput(
        "There is no such format", field=field, fix=f"Choose one of {', '.join(FORMATS)}.", given=name[:40]
    )
