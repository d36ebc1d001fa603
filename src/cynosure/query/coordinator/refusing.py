"""Statements that are refused before they are one: counted and recorded all the same.

Somebody who looks for a way around (`reflect`, `SET`, INSERT) is who an audit is for.

A maintainer must not break: nothing of the text is recorded that could be a constant. So of a query that can
be parsed its words and names are, `?` for the rest; of everything else the word that it begins with, if that
is one of SQL's; and the event has an id of its own: the client may use its id for the next statement, whose
event would then be taken for this one's.
"""

import uuid
from collections.abc import Sequence
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from cynosure.common.errors import CynosureError
from cynosure.query.catalog_access.port import QueryEvent
from cynosure.query.coordinator.statement import State
from cynosure.query.errors import SqlError
from cynosure.query.sql.dialect import DIALECT
from cynosure.query.sql.tokens import read_tokens

REFUSED: Final = "refused"
"""Why no engine ran it, in metrics and events."""
_QUERIES: Final = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.L_PAREN}
)
_CONSTANTS: Final = frozenset(
    {TokenType.STRING, TokenType.NUMBER, TokenType.HEREDOC_STRING, TokenType.RAW_STRING}
    | {TokenType.BIT_STRING, TokenType.HEX_STRING, TokenType.BYTE_STRING}
    | {TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING}
)
_WORDS: Final = frozenset([*DIALECT.tokenizer_class.KEYWORDS, *DIALECT.tokenizer_class.SINGLE_TOKENS])
"""Of SQL itself."""
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER, *_CONSTANTS})
_BROKEN: Final = (
    SqlError,
    SqlglotError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a text is not understood with."""


def make_event(error: CynosureError, sql: str, *, elapsed_ms: int) -> QueryEvent:
    """What is recorded of a refused statement."""
    return QueryEvent(
        statement_id=str(uuid.uuid4()),
        outcome=State.FAILED.value,
        sql=sql,
        tables=(),
        policies=(),
        rows=0,
        bytes=0,
        elapsed_ms=elapsed_ms,
        engine="none",
        reason=REFUSED,
        error=type(error).__name__,
    )


def redact_refused(text: str, *, max_bytes: int) -> str:
    """A text that is no statement of ours, without its constants; empty when it is nothing of SQL."""
    try:
        # Sized and counted first: what passes is parsed in time.
        tokens = read_tokens(text, max_bytes=max_bytes)
    except _BROKEN:
        return ""
    first = tokens[0]
    if first.token_type in _QUERIES and _is_query(text, tokens):
        return " ".join(_word(each) for each in tokens)
    return "" if first.token_type in _NAMES or not first.text.isalpha() else first.text.upper()


def _is_query(text: str, tokens: Sequence[Token]) -> bool:
    try:
        trees = DIALECT.parser().parse(list(tokens), text)
    except _BROKEN:
        return False
    # In a command anything may stand, and words need not be names there.
    return len(trees) == 1 and isinstance(trees[0], exp.Query) and trees[0].find(exp.Command) is None


def _word(token: Token) -> str:
    text = str(token.text)
    match token.token_type:
        case TokenType.IDENTIFIER:
            return f"`{text.replace('`', '``')}`"
        case TokenType.VAR:
            # `1_000` is one to the tokenizer.
            return "?" if text[:1].isdigit() else text
        case _:
            # A hint is one token, with all that stands in it.
            return text if text.upper() in _WORDS else "?"
