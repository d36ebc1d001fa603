"""Errors of statements, with a caret under the place that they are about.

A maintainer must not break: what is shown of the statement is escaped, as everything that reaches a terminal.
"""

from cynosure.cli.output import harmless, print_error, tell
from cynosure.common.errors import CynosureError

_MOST = 100
_HIDDEN = ("status", "type", "request_id", "field", "line", "column")


def show_statement_error(
    error: CynosureError, sql: str, *, source: str = "", line: int = 1, column: int = 1
) -> None:
    """One block on standard error. `source`: the file that the statement is from, at this line and column."""
    at_line, at_column = error.details.get("line"), error.details.get("column")
    where = {"file": source} if source else {}
    if isinstance(at_line, int) and isinstance(at_column, int):
        _point(sql, at_line, at_column)
        in_text = at_column + (column - 1 if at_line == 1 else 0)
        where["line"] = f"{line + at_line - 1}, column {in_text}"
    elif source:
        where["line"] = str(line)
    shown = {name: value for name, value in error.details.items() if name not in _HIDDEN}
    print_error(CynosureError(error.message, fix=error.fix, **where, **shown))


def _point(sql: str, line: int, column: int) -> None:
    lines = sql.split("\n")
    if not 1 <= line <= len(lines):
        return
    text, at = lines[line - 1], max(0, column - 1)
    begin = max(0, at - _MOST // 2)
    before, after = harmless(text[begin:at].replace("\t", " ")), harmless(text[at : begin + _MOST])
    tell(f"  {before}{after}")
    tell(f"  {' ' * len(before)}^")
