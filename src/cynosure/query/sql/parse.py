"""Text to a statement: sized, tokenized, parsed, allowed.

    text ─► tokens.py (size, characters, nesting) ─► sqlglot ─► parameters.py ─► allow.py ─► Statement

A maintainer must not break: nothing leaves here that `allow.py` did not see, and no error holds a constant of
the statement.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.allow import check_query
from cynosure.query.sql.commands import read_describe, read_show
from cynosure.query.sql.dialect import DIALECT, WRITTEN
from cynosure.query.sql.edits import replace_all
from cynosure.query.sql.functions import UNIT_FIRST
from cynosure.query.sql.parameters import Parameters, put_parameters
from cynosure.query.sql.statements import Describe, Explain, Query, Show, Statement
from cynosure.query.sql.tokens import MAX_BYTES, place_of, read_tokens

_SKIPPED: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?!\+)(?:[^*]|\*(?!/))*\*/)*"
_FIRST_WORDS: Final = re.compile(rf"{_SKIPPED}([A-Za-z]+)\b")
_BEGINNINGS: Final = ("SELECT", "WITH", "VALUES", "FROM", "SHOW", "DESCRIBE", "EXPLAIN", "DESC")
_SEND_QUERY: Final = "Send a SELECT, SHOW, DESCRIBE or EXPLAIN."
_OTHERS: Final = frozenset(
    [
        "insert",
        "update",
        "delete",
        "merge",
        "create",
        "drop",
        "alter",
        "set",
        "reset",
        "use",
        "cache",
        "uncache",
        "refresh",
        "truncate",
        "load",
        "declare",
        "execute",
        "add",
        "list",
        "call",
        "begin",
        "analyze",
        "msck",
        "repair",
        "comment",
        "grant",
        "revoke",
        "export",
        "import",
        "optimize",
        "vacuum",
        "replace",
        "clear",
        "explode",
        "table",
        "call",
        "copy",
        "lock",
        "unlock",
        "commit",
        "rollback",
        "start",
        "kill",
        "attach",
        "detach",
        "install",
        "pragma",
    ]
)


def parse_statement(text: str, *, parameters: Parameters = (), max_bytes: int = MAX_BYTES) -> Statement:
    """What a text asks for; `SqlError` with line and column, or `NotAllowed`."""
    tokens = read_tokens(text, max_bytes=max_bytes)
    try:
        return _parse_tokens(text, tokens, parameters, max_bytes)
    except SqlError as error:
        error.put_at(**place_of(tokens[0]))
        raise


def _parse_tokens(text: str, tokens: Sequence[Token], parameters: Parameters, max_bytes: int) -> Statement:
    word, end = _first_word(text)
    if word == "EXPLAIN":
        return _parse_explain(text, end, parameters, max_bytes)
    if word in ("SHOW", "DESCRIBE", "DESC"):
        rest = _blank(text, end)
        behind = _read_rest(rest, max_bytes)
        if word == "SHOW":
            _refuse_parameters(parameters)
            return read_show(behind)
        found = read_describe(behind)
        if found is not None:
            _refuse_parameters(parameters)
            return found
        if behind[0].text.upper() == "QUERY":
            rest = _blank(rest, behind[0].end + 1)
        return Describe("query", query=Query(_parse_query(rest, _read_rest(rest, max_bytes), parameters)))
    if word.lower() in _OTHERS:
        fix = "Write SELECT * FROM table." if word == "TABLE" else _SEND_QUERY
        raise NotAllowed(f"{word} is not allowed", fix=fix, **place_of(tokens[0]))
    return Query(_parse_query(text, tokens, parameters))


def parse_view(text: str) -> exp.Expression:
    """The query of a view, allowed like a user's."""
    tokens = read_tokens(text)
    return _parse_query(text, tokens, ())


def select_all(parts: Sequence[str]) -> Query:
    """The query of all columns of a table or view. Its errors do not point into anybody's text."""
    name = ".".join(f"`{each.replace('`', '``')}`" for each in parts)
    tree = parse_view(f"SELECT * FROM {name}")  # noqa: S608 - a name in backticks, and checked like any text
    for node in tree.walk():
        node._meta = None
    return Query(tree)


def check_written(tree: exp.Expression) -> None:
    """What engines get is text: read it again, and see that it is nothing but what was checked."""
    try:
        text = tree.sql(dialect=WRITTEN)
        again = _run_parser(text, DIALECT.tokenize(text))
        _settle(again)
        check_query(again)
        is_same = again.sql(dialect=WRITTEN) == text
    except (
        SqlglotError,
        SqlError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise SqlError("The statement is not understood", fix="Say it in another way.") from error
    if not is_same:
        raise SqlError("The statement is not understood", fix="Say it in another way.")


def _parse_explain(text: str, end: int, parameters: Parameters, max_bytes: int) -> Explain:
    rest = _blank(text, end)
    tokens = _read_rest(rest, max_bytes)
    mode = tokens[0].text.upper()
    if mode in ("COST", "CODEGEN", "LOGICAL", "ANALYZE"):
        raise NotAllowed(
            "This kind of EXPLAIN is not allowed",
            fix="Write EXPLAIN or EXPLAIN EXTENDED.",
            **place_of(tokens[0]),
        )
    if mode in ("EXTENDED", "FORMATTED"):
        rest = _blank(rest, tokens[0].end + 1)
        tokens = _read_rest(rest, max_bytes)
    word, _ = _first_word(rest)
    if word in ("SHOW", "DESCRIBE", "DESC", "EXPLAIN") or word.lower() in _OTHERS:
        raise NotAllowed("Only queries are explained", fix="Write EXPLAIN SELECT ….", **place_of(tokens[0]))
    return Explain(
        Query(_parse_query(rest, tokens, parameters)), is_extended=mode in ("EXTENDED", "FORMATTED")
    )


def _parse_query(text: str, tokens: Sequence[Token], parameters: Parameters) -> exp.Expression:
    _check_tokens(text, tokens)
    tree = _run_parser(text, tokens)
    try:
        put_parameters(tree, parameters)
        _settle(tree)
        check_query(tree)
    except RecursionError as error:
        raise SqlError("The statement is nested too deeply", fix="Nest less.") from error
    return tree


_BEHIND_COMMA: Final = frozenset(
    {
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.LIMIT,
    }
    | {TokenType.R_PAREN, TokenType.COMMA, TokenType.UNION}
)


def _check_tokens(text: str, tokens: Sequence[Token]) -> None:
    """What the parser takes without a word, and Spark does not."""
    before: TokenType | None = None
    last: Token | None = None
    has_select = [True]  # for each pair of parentheses; `trim('x' FROM 'xax')` has none
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            has_select.append(False)
        elif kind is TokenType.R_PAREN and len(has_select) > 1:
            has_select.pop()
        elif kind is TokenType.SELECT:
            has_select[-1] = True
        if kind is TokenType.PIPE_GT:
            raise NotAllowed("|> is not allowed", fix="Write it as SELECT.", **place_of(token))
        if kind is TokenType.HEX_STRING and text[token.start] == "0":
            raise SqlError("A number is not understood", fix="Write it in digits.", **place_of(token))
        if before is TokenType.COMMA and kind in _BEHIND_COMMA:
            raise SqlError("There is nothing behind a comma", fix="Leave the comma out.", **place_of(token))
        if before in (TokenType.FROM, TokenType.JOIN) and kind is TokenType.STRING and has_select[-1]:
            raise SqlError("A text is no table", fix="Write its name without quotes.", **place_of(token))
        is_behind = last is not None and last.token_type is TokenType.STRING and last.end + 1 == token.start
        if is_behind and text[token.start - 1] == text[token.start] == '"':
            # To Spark this is one text, with a quote in it.
            raise SqlError("A quote is doubled in a text", fix='Write \\" in its place.', **place_of(token))
        before, last = kind, token


def _run_parser(text: str, tokens: Sequence[Token]) -> exp.Expression:
    try:
        trees: Sequence[Any] = DIALECT.parser().parse(_as_calls(tokens), text)
    except ParseError as error:
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        raise _explain_error(first, tokens) from error
    except RecursionError as error:
        raise SqlError("The statement is nested too deeply", fix="Nest less.") from error
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Text that nobody thought of: a parser that stumbles has not understood it.
        raise SqlError("The statement is not understood", fix="Look at its syntax.") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise SqlError("The statement is not understood", fix=_SEND_QUERY)
    return trees[0]


def _as_calls(tokens: Sequence[Token]) -> list[Token]:
    """`window(ts, '1 day')` is a call; the parser would take it for the clause."""
    settled = list(tokens)
    for at, token in enumerate(tokens[:-1]):
        if token.token_type is TokenType.WINDOW and tokens[at + 1].token_type is TokenType.L_PAREN:
            settled[at] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return settled


def _explain_error(first: dict[str, Any], tokens: Sequence[Token]) -> SqlError:
    found = str(first.get("highlight") or "")
    line, column = int(first.get("line") or 0), int(first.get("col") or 0)
    column = max(column - len(found) + 1, 1) if column else 0
    description = str(first.get("description") or "")
    fix = "Look at what stands here and before it."
    if description.startswith("Expect"):
        # What it got instead it shows as an object of its own; the place says that better.
        fix = f"{description.partition(' but got')[0].removesuffix('.')}."
    token = next((each for each in tokens if place_of(each) == {"line": line, "column": column}), None)
    word = token.text if token is not None and token.token_type is TokenType.VAR else ""
    at = tokens.index(token) if token is not None else 0
    suspects = [token, tokens[at - 1] if at else None, tokens[0]]
    for each in suspects:
        if each is None or each.token_type is not TokenType.VAR:
            continue
        written = each.text.upper()
        near = get_close_matches(written, _HINTS, n=1, cutoff=0.75)
        if written == "TOP":
            fix = "Write LIMIT at the end in place of TOP."
        elif near:
            fix = f"Did you mean {near[0]} in place of {written[:50]}?"
        else:
            continue
        # What is wrong is the word, not what stands behind it.
        line, column = place_of(each).values()
        word = each.text
        break
    if token is not None and token.token_type is TokenType.STRING:
        word = "a text"
    return SqlError(
        "The statement cannot be parsed",
        fix=fix,
        line=line,
        column=column,
        **({"near": word[:50]} if word else {}),
    )


_HINTS: Final = (
    *_BEGINNINGS,
    *("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "JOIN", "LEFT"),
    *("RIGHT", "INNER", "OUTER", "CROSS", "LATERAL", "BETWEEN", "PARTITION", "OVER", "EXISTS", "DISTINCT"),
)


def _settle(tree: exp.Expression) -> None:
    """What the parser leaves open: comments, hints and LIMIT ALL go, units of time are no columns."""
    found: list[tuple[exp.Expr, exp.Expr]] = []
    for node in tree.walk():
        node.comments = None
        if isinstance(node, exp.RawString):
            found.append((node, exp.Literal.string(node.this)))
        elif isinstance(node, exp.Select) and node.args.get("hint") is not None:
            node.set("hint", None)
        elif isinstance(node, exp.Limit) and isinstance(node.expression, exp.Var) and node.parent is not None:
            # LIMIT ALL, the only word that `allow.py` lets pass here: no limit.
            if node.expression.name.upper() == "ALL":
                node.parent.set("limit", None)
        elif isinstance(node, exp.Anonymous) and len(node.expressions) == 3:
            unit = node.expressions[0]
            if str(node.this).lower() in UNIT_FIRST and isinstance(unit, exp.Column) and not unit.table:
                found.append((unit, exp.Var(this=unit.name.upper())))
    replace_all(found)


def _first_word(text: str) -> tuple[str, int]:
    match = _FIRST_WORDS.match(text)
    return (match[1].upper(), match.end()) if match else ("", 0)


def _blank(text: str, end: int) -> str:
    """The text with its beginning made blank: places in what is left stay as they are."""
    return re.sub(r"[^\n]", " ", text[:end]) + text[end:]


def _read_rest(text: str, max_bytes: int) -> Sequence[Token]:
    try:
        return read_tokens(text, max_bytes=max_bytes)
    except SqlError as error:
        if error.message == "There is no statement":
            raise SqlError("The statement is not complete", fix="Say of what.") from error
        raise


def _refuse_parameters(parameters: Parameters) -> None:
    if parameters:
        raise SqlError("The statement has no parameters", fix="Send no values.")


__all__ = ["Describe", "Explain", "Query", "Show", "parse_statement", "parse_view", "select_all"]
