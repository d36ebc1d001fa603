"""What is looked at before a statement is parsed: its size, its characters, how deep it nests.

The parser recurses, and tries what could be a type in several ways, each of which doubles its work with every
call inside another. So nesting is counted on tokens, in one pass.

A maintainer must not break: whatever passes here is parsed in time and memory in proportion to its length.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, NoReturn

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from cynosure.query.errors import SqlError
from cynosure.query.sql.dialect import DIALECT

MAX_BYTES: Final = 2**20
MAX_TOKENS: Final = 60_000
MAX_NESTING: Final = 40
"""Parentheses, brackets and CASE, one inside the other."""
MAX_CHAIN: Final = 500
"""`a AND b AND …`, UNION, JOIN: one behind the other. Trees of engines grow as deep."""
_MAX_TYPE_CALLS: Final = 5
"""`date(date(…))`, `date[date[…]]`: of names that could be types, each doubles the work of the parser."""
_MAX_SIGNS: Final = 20
"""`NOT NOT …`, `- - …`: one behind the other."""
_MAX_SUFFIXES: Final = 60
"""`a.b.c…`, `a[0][1]…`, `a::int::int…`: one behind the other."""

SUBSTITUTION_FIX: Final = (
    "Use a parameter (:name), and write a text with a dollar before a brace in two parts."
)

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_AFTER_TYPES: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_SIGNS: Final = frozenset(
    {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL}
)
_SUFFIXES: Final = frozenset(
    {TokenType.DOT, TokenType.L_BRACKET, TokenType.DCOLON, TokenType.ARROW, TokenType.OVER, TokenType.IN}
    | {TokenType.BETWEEN, TokenType.COLON}
)
_CLAUSES: Final = frozenset(
    {TokenType.COMMA, TokenType.SELECT, TokenType.FROM, TokenType.WHERE}
    | {TokenType.ON, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.ALIAS}
    | {TokenType.JOIN, TokenType.UNION, TokenType.WITH, TokenType.GROUP_BY, TokenType.ORDER_BY}
)
_INSIDE_FROM: Final = frozenset({TokenType.COMMA, TokenType.ON, TokenType.ALIAS, TokenType.JOIN})
_RESTART: Final = _CLAUSES | {TokenType.AND, TokenType.OR}
_SET_OPERATORS: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_OPERATORS: Final = frozenset(
    {TokenType.AND, TokenType.OR, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH}
    | {TokenType.MOD, TokenType.DIV, TokenType.DPIPE, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.GT}
    | {TokenType.LTE, TokenType.GTE, TokenType.NULLSAFE_EQ, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE}
    | {TokenType.IS, TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.STRING}
)
_NESTED_TYPES: Final = frozenset({TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT})
_ALLOWED_CONTROLS: Final = frozenset("\t\n\r")
_CLOSED: Final = re.compile(
    r"""'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`(?:[^`]|``)*+`|--[^\n]*|/\*.*?\*/|(?!/\*)[^'"`]""",
    re.DOTALL,
)
"""A text, a name, a comment, or any other character."""
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Cn"})


def read_tokens(text: str, *, max_bytes: int = MAX_BYTES) -> Sequence[Token]:
    """The words of one statement, without the `;` behind it; `SqlError` for what is not to be parsed."""
    if len(text) > max_bytes or len(text.encode(errors="surrogatepass")) > max_bytes:
        raise SqlError("The statement is too long", fix="Send a shorter one.", limit=max_bytes)
    _check_characters(text)
    try:
        tokens = DIALECT.tokenize(text)
    except (SqlglotError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise SqlError(
            "The statement cannot be read",
            fix="Look for a quote or a comment that is not closed.",
            **_place_of_unclosed(text),
        ) from error
    if len(tokens) > MAX_TOKENS:
        raise SqlError("The statement has too many words", fix="Send a shorter one.", limit=MAX_TOKENS)
    tokens = _only_one(tokens)
    _check_nesting(tokens)
    return tokens


def place_of(token: Token) -> dict[str, int]:
    """Line and column of a token's first character, as errors carry them."""
    return {"line": token.line, "column": max(token.col - (token.end - token.start), 1)}


def _place_of_unclosed(text: str) -> dict[str, int]:
    """Where something begins that does not end; nothing if there is no such thing."""
    at = 0
    while (found := _CLOSED.match(text, at)) is not None:
        at = found.end()
    if at == len(text):
        return {}
    return {"line": text.count("\n", 0, at) + 1, "column": at - text.rfind("\n", 0, at)}


def _check_characters(text: str) -> None:
    for at, sign in enumerate(text):
        if sign >= " " and sign < "\x7f":
            continue
        if sign not in _ALLOWED_CONTROLS and unicodedata.category(sign) in _REFUSED_CATEGORIES:
            raise SqlError(
                "The statement has a character that is not text",
                fix="Remove it; in texts write it as an escape, like \\u0000.",
                line=text.count("\n", 0, at) + 1,
                column=at - text.rfind("\n", 0, at),
                character=f"U+{ord(sign):04X}",
            )
    # Spark puts settings and the environment in place of these, in texts and comments too.
    at = text.find("${")
    if at >= 0:
        raise SqlError(
            "Substitutions are not allowed, in texts neither",
            fix=SUBSTITUTION_FIX,
            line=text.count("\n", 0, at) + 1,
            column=at - text.rfind("\n", 0, at),
        )


def _only_one(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise SqlError("There is no statement", fix="Send one.")
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise SqlError("There is more than one statement", fix="Send one at a time.", **place_of(token))
    return tokens


class _Level:
    """One pair of parentheses: how long the chains in it are."""

    __slots__ = ("is_from", "is_type_call", "joins", "operators", "sets", "suffixes")

    def __init__(self, *, is_type_call: bool = False) -> None:
        self.is_type_call = is_type_call
        self.is_from = False
        self.operators = self.sets = self.joins = self.suffixes = 0

    def takes(self, kind: TokenType) -> bool:
        """Whether its chains are still short enough, with this word."""
        if kind in _SET_OPERATORS:
            self.sets += 1
        elif kind in _OPERATORS:
            self.operators += 1
        elif kind is TokenType.JOIN or (kind is TokenType.COMMA and self.is_from):
            self.joins += 1
        if kind in _SUFFIXES:
            self.suffixes += 1
        elif kind in _RESTART:
            self.suffixes = 0
        if kind in _CLAUSES:
            self.operators = 0
            self.is_from = kind is TokenType.FROM or (self.is_from and kind in _INSIDE_FROM)
        if kind is TokenType.FROM:
            self.joins = 0
        return max(self.operators, self.sets, self.joins) <= MAX_CHAIN and self.suffixes <= _MAX_SUFFIXES


def _check_nesting(tokens: Sequence[Token]) -> None:
    levels = [_Level()]
    calls = signs = angles = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        is_short = levels[-1].takes(kind)
        if kind in _OPENING:
            is_type_call = kind in _AFTER_TYPES and before in SparkParser.TYPE_TOKENS
            levels.append(_Level(is_type_call=is_type_call))
            calls += is_type_call
        elif kind in _CLOSING and len(levels) > 1:
            calls -= levels.pop().is_type_call
        if kind is TokenType.LT and before in _NESTED_TYPES:
            angles += 1
        elif kind is TokenType.GT and angles:
            angles -= 1
        if kind in _SIGNS:
            signs += 1
        elif kind not in _OPENING:
            signs = 0
        is_deep = len(levels) - 1 + angles > MAX_NESTING or calls > _MAX_TYPE_CALLS
        if not is_short or is_deep or signs > _MAX_SIGNS:
            _refuse_depth(token)
        before = kind


def _refuse_depth(token: Token) -> NoReturn:
    raise SqlError(
        "The statement is nested too deeply",
        fix="Nest less; name parts of it with WITH.",
        limit=MAX_NESTING,
        **place_of(token),
    )
