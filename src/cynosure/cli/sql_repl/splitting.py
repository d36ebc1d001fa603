"""Text into statements, at semicolons that are neither in quotes nor in comments.

A maintainer must not break: what is sent is what was written, from its first to its last character; only
comments and blanks around a statement are left out.
"""

import re
from typing import Final, NamedTuple

_MARK: Final = re.compile(r"""'|"|`|--|/\*|\*/|;|\n""")
_QUOTES: Final = frozenset({"'", '"', "`"})
_LINE_COMMENT: Final = re.compile(r"\s*--[^\n]*(\n|\Z)")
_BLANK: Final = re.compile(r"\s+")
_SLASHES: Final = re.compile(r"/\*|\*/")


class Placed(NamedTuple):
    """A statement, and where its first character is."""

    text: str
    line: int
    column: int


class Split(NamedTuple):
    """What a text holds."""

    statements: list[str]
    """Without their semicolons."""
    rest: str
    """What comes behind the last semicolon; empty when there is nothing but blanks and comments."""


def split_statements(text: str) -> Split:
    """Cut a text at its semicolons. Comments between slashes may be inside of each other, as in Spark."""
    *whole, (rest, _) = _cut(text)
    return Split([each for each, _ in whole if each], rest)


def place_statements(text: str) -> list[Placed]:
    """All statements of a text, the last one with or without its semicolon."""
    placed: list[Placed] = []
    line, counted = 1, 0
    for each, at in _cut(text):
        line += text.count("\n", counted, at)
        counted = at
        if each:
            placed.append(Placed(each, line, at - text.rfind("\n", 0, at)))
    return placed


def _cut(text: str) -> list[tuple[str, int]]:
    """What is between semicolons, without blanks and comments around it, and where it begins."""
    cut: list[tuple[str, int]] = []
    begin, depth, quote, is_line_comment = 0, 0, "", False
    for found in _MARK.finditer(text):
        mark = found[0]
        if is_line_comment:
            is_line_comment = mark != "\n"
        elif depth:
            depth += {"/*": 1, "*/": -1}.get(mark, 0)
        elif quote:
            if mark == quote and (quote == "`" or not _is_escaped(text, found.start())):
                quote = ""
        elif mark in _QUOTES:
            quote = mark
        elif mark == "--":
            is_line_comment = True
        elif mark == "/*":
            depth = 1
        elif mark == ";":
            cut.append(_trim(text, begin, found.start()))
            begin = found.end()
    cut.append(_trim(text, begin, len(text)))
    return cut


def _is_escaped(text: str, at: int) -> bool:
    first = at
    while first and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _trim(text: str, at: int, end: int) -> tuple[str, int]:
    """Without blanks and whole comments in front of it, and blanks behind it; and where it begins."""
    while True:
        if (blank := _BLANK.match(text, at, end)) is not None:
            at = blank.end()
        elif (line := _LINE_COMMENT.match(text, at, end)) is not None:
            at = line.end()
        elif text.startswith("/*", at, end) and (after := _end_of_comment(text, at, end)) is not None:
            at = after
        else:
            return text[at:end].rstrip(), at


def _end_of_comment(text: str, at: int, end: int) -> int | None:
    depth = 0
    for found in _SLASHES.finditer(text, at, end):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return None
