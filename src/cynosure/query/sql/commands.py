"""SHOW and DESCRIBE, and the words before the query of an EXPLAIN: read word by word.

A maintainer must not break: a word that is not expected where it stands is an error; nothing is skipped.
"""

from collections.abc import Sequence
from typing import Final, Literal, NoReturn

from sqlglot import Token, TokenType

from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.statements import Describe, Show
from cynosure.query.sql.tokens import place_of

_NAMESPACES: Final = ("NAMESPACES", "SCHEMAS", "DATABASES")
_SHOW_FIX: Final = (
    "Write SHOW CATALOGS, NAMESPACES, TABLES, VIEWS, FUNCTIONS (all with LIKE 'pattern'), COLUMNS IN table, "
    "CREATE TABLE table, TBLPROPERTIES table ('key') or CURRENT NAMESPACE."
)
_SHOW_INSTEAD: Final = {
    "PARTITIONS": "Write SELECT * FROM table.partitions; what they are made of: DESCRIBE table.",
    "TABLE": "Write SHOW TABLES, or DESCRIBE EXTENDED table.",
}
_MAX_PATTERN: Final = 1_000
"""Characters. Each alternative in it is held against each name."""
_DESCRIBE_FIX: Final = (
    "Write DESCRIBE [TABLE] [EXTENDED] table, DESCRIBE NAMESPACE name or DESCRIBE QUERY query."
)


class Words:
    """Tokens from the first to the last."""

    def __init__(self, tokens: Sequence[Token], fix: str) -> None:
        self._tokens = tokens
        self._at = 0
        self._fix = fix

    @property
    def token(self) -> Token | None:
        """The next one; None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self, *words: str) -> str | None:
        """The next word, if it is one of these and not in backticks."""
        token = self.token
        if token is None or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return None
        word = token.text.upper()
        if word not in words:
            return None
        self._at += 1
        return word

    def take_name(self) -> tuple[str, ...]:
        """A name with dots."""
        parts = [self._take_part()]
        while (token := self.token) is not None and token.token_type is TokenType.DOT:
            self._at += 1
            parts.append(self._take_part())
        return tuple(parts)

    def take_text(self) -> str | None:
        """A text in quotes."""
        token = self.token
        if token is None or token.token_type is not TokenType.STRING:
            return None
        self._at += 1
        return token.text

    def end(self) -> None:
        """There is nothing more."""
        if self.token is not None:
            self.refuse()

    def refuse(self) -> NoReturn:
        """What is next cannot be here."""
        token = self.token or self._tokens[-1] if self._tokens else None
        raise SqlError(
            "The statement is not understood", fix=self._fix, **(place_of(token) if token is not None else {})
        )

    def _take_part(self) -> str:
        token = self.token
        if (
            token is None
            or not (token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum())
            or token.token_type in (TokenType.STRING, TokenType.NUMBER)
        ):
            self.refuse()
        self._at += 1
        return token.text


def read_show(tokens: Sequence[Token]) -> Show:
    """What is behind SHOW."""
    words = Words(tokens, _SHOW_FIX)
    if words.take("CATALOGS"):
        return _show(words, "catalogs", within=())
    if words.take(*_NAMESPACES):
        return _show(words, "namespaces")
    if words.take("TABLES"):
        return _show(words, "tables")
    if words.take("VIEWS"):
        return _show(words, "views")
    if words.take("COLUMNS"):
        if not words.take("IN", "FROM"):
            words.refuse()
        table = words.take_name()
        if words.take("IN", "FROM"):
            table = (*words.take_name(), *table[-1:])
        words.end()
        return Show("columns", table)
    if words.take("CURRENT"):
        if not words.take("NAMESPACE"):
            words.refuse()
        words.end()
        return Show("current-namespace")
    if words.take("CREATE"):
        if not words.take("TABLE"):
            words.refuse()
        table = words.take_name()
        words.end()
        return Show("create-table", table)
    if words.take("TBLPROPERTIES"):
        table = words.take_name()
        key = _take_key(words)
        words.end()
        return Show("tblproperties", table, key=key)
    if words.take("ALL", "SYSTEM") and not words.take("FUNCTIONS"):
        words.refuse()
    if words.take("FUNCTIONS") or (tokens and tokens[0].text.upper() in ("ALL", "SYSTEM")):
        return _show(words, "functions", within=())
    fix = _SHOW_INSTEAD.get(tokens[0].text.upper(), _SHOW_FIX)
    raise NotAllowed("This SHOW is not allowed", fix=fix, **place_of(tokens[0]))


def _take_key(words: Words) -> str | None:
    """`('write.format.default')`, or the same without quotes."""
    if not words.take("("):
        return None
    key = words.take_text()
    if key is None:
        key = ".".join(words.take_name())
    if not words.take(")"):
        words.refuse()
    return key


_What = Literal["catalogs", "namespaces", "tables", "views", "functions"]


def _show(words: Words, what: _What, within: tuple[str, ...] | None = None) -> Show:
    if within is None:
        within = words.take_name() if words.take("IN", "FROM") else ()
    has_like = words.take("LIKE")
    token = words.token
    like = words.take_text()
    if has_like and like is None:
        words.refuse()
    if token is not None and like is not None and len(like) > _MAX_PATTERN:
        raise SqlError(
            "The pattern is too long", fix="Send a shorter one.", limit=_MAX_PATTERN, **place_of(token)
        )
    words.end()
    return Show(what, within, like)


def read_describe(tokens: Sequence[Token]) -> Describe | None:
    """What is behind DESCRIBE, unless that is a query."""
    words = Words(tokens, _DESCRIBE_FIX)
    if words.take("NAMESPACE", "SCHEMA", "DATABASE"):
        is_extended = bool(words.take("EXTENDED"))
        name = words.take_name()
        words.end()
        return Describe("namespace", name, is_extended=is_extended)
    if words.take("FUNCTION"):
        raise NotAllowed("DESCRIBE FUNCTION is not allowed", fix=_DESCRIBE_FIX, **place_of(tokens[0]))
    if words.take("QUERY", "SELECT", "WITH", "VALUES", "FROM") or (
        words.token is not None and words.token.token_type is TokenType.L_PAREN
    ):
        return None
    words.take("TABLE")
    is_extended = bool(words.take("EXTENDED", "FORMATTED"))
    name = words.take_name()
    words.end()
    return Describe("table", name, is_extended=is_extended)
