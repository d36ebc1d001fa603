"""What the command line prints: results on standard output, everything else on standard error.

A maintainer must not break: with `--json` standard output is one JSON document and nothing else. Else no
text that users of a catalog chose reaches the terminal unescaped: it may hold commands to it.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cynosure.common.errors import CynosureError
from cynosure.common.progress import Progress, Report


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_line(text: str) -> None:
    """A line of a result for people."""
    print(harmless(text))


def print_fields(fields: Mapping[str, Any]) -> None:
    """Names and values, one per line, aligned. Absent values are left out."""
    shown = {name: value for name, value in fields.items() if value is not None and value != ""}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        print(f"{harmless(name):<{width}}  {harmless(str(value))}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns under their headings, aligned; readable by people and by `awk`."""
    cells_of = (tuple("-" if cell is None else harmless(str(cell)) for cell in row) for row in rows)
    lines = [tuple(columns), *cells_of]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def tell(text: str) -> None:
    """A line for people, on standard error."""
    print(text, file=sys.stderr, flush=True)


def print_error(error: CynosureError) -> None:
    """What went wrong, its details and the fix, as one block on standard error."""
    is_terminal = sys.stderr.isatty()
    bold_red, dim, end = ("\x1b[1;31m", "\x1b[2m", "\x1b[0m") if is_terminal else ("", "", "")
    tell(f"{bold_red}Error:{end} {error.message}")
    for name, value in error.details.items():
        tell(f"  {dim}{name}:{end} {_one_line(value)}")
    if error.fix:
        tell(f"Fix: {error.fix}")


@contextmanager
def show_progress() -> Iterator[Report]:
    """Progress as a live bar on a terminal, as plain lines otherwise."""
    if not sys.stderr.isatty():
        yield _print_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=None, visible=False)

        def report(progress: Progress) -> None:
            bars.update(
                bar,
                description=progress.message,
                completed=progress.done or 0,
                total=progress.total,
                visible=True,
            )

        yield report


def _print_progress(progress: Progress) -> None:
    numbers = ""
    if progress.done is not None:
        numbers = f" {progress.done}" if progress.total is None else f" {progress.done}/{progress.total}"
    tell(f"{progress.message}{numbers}")


def harmless(text: str) -> str:
    """Text that a terminal only shows: what does not print is written as Python would."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _one_line(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if text.isprintable() else repr(text)
