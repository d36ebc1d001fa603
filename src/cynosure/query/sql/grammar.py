"""Joins and precedence as Spark's grammar has them (`SqlBaseParser.g4`); sqlglot's own are others.

    condition   NOT condition | value [predicate]; then AND, then OR
    predicate   BETWEEN, IN, LIKE, ILIKE, RLIKE, IS: one, about the whole value before it
    value       - ~   then * / % DIV   then + - ||   then << >>   then &   then ^   then |
                then = <=> <> < <= > >=, all alike, from left to right
    join        what is joined is one relation, or stands in parentheses

A maintainer must not break: the text for Spark has no parentheses but the user's, so a tree that Spark would
read otherwise is another answer there than here. And no rule is tried and taken back: each that is doubles
the work with every one inside another.
"""

from typing import Any, Final

from sqlglot import TokenType, exp
from sqlglot.parsers.spark import SparkParser

_PREDICATES: Final = (
    TokenType.BETWEEN,
    TokenType.IN,
    TokenType.LIKE,
    TokenType.ILIKE,
    TokenType.RLIKE,
    TokenType.IS,
)
_COMPARISONS: Final = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_BITS: Final[dict[type[exp.Binary], int]] = {
    exp.BitwiseLeftShift: 4,
    exp.BitwiseRightShift: 4,
    exp.BitwiseAnd: 3,
    exp.BitwiseXor: 2,
    exp.BitwiseOr: 1,
}
_ENDS_NO_PREDICATE: Final = frozenset({*_PREDICATES, *_COMPARISONS, TokenType.NOT})


class SparkGrammar(SparkParser):
    """Reads what sqlglot reads, in Spark's order."""

    TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}  # noqa: RUF012
    RANGE_PARSERS = {kind: SparkParser.RANGE_PARSERS[kind] for kind in _PREDICATES}  # noqa: RUF012
    # Without NOT, which is no operand.
    UNARY_PARSERS = {  # noqa: RUF012
        TokenType.PLUS: SparkParser.UNARY_PARSERS[TokenType.PLUS],
        TokenType.TILDE: SparkParser.UNARY_PARSERS[TokenType.TILDE],
        TokenType.DASH: lambda self: self._parse_negative(),
    }

    def _parse_equality(self, parse_is: bool = True) -> Any:
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        return self._parse_range()

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        this = this or self._parse_compared()
        is_negated = self._match(TokenType.NOT)
        if not self._match_set(self.RANGE_PARSERS):
            if is_negated:
                self._retreat(self._index - 1)
            return this
        if type(this) in _COMPARISONS.values():
            # Where `a <=> b` is written IS NOT DISTINCT FROM, more behind it would belong to b.
            this = exp.Paren(this=this)
        this = self.RANGE_PARSERS[self._prev.token_type](self, this)
        if is_negated:
            this = self._negate_range(this)
        if self._curr.token_type in _ENDS_NO_PREDICATE:
            self.raise_error("Expected parentheses around a condition that another one is about")
        return this

    def _parse_between(self, this: Any) -> Any:
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expected AND between two values, with parentheses around comparisons")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_is(self, this: Any) -> Any:
        is_negated = self._match(TokenType.NOT)
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if is_negated else exp.NullSafeNEQ
            return self._build_predicate(kind, this, self._parse_compared())
        value = self._parse_null() or self._parse_boolean()
        if value is None:
            self.raise_error("Expected NULL, TRUE, FALSE or DISTINCT FROM")
        this = self._build_predicate(exp.Is, this, value)
        return self.expression(exp.Not(this=this)) if is_negated else this

    def _parse_compared(self) -> Any:
        this = self._parse_bitwise()
        while self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            this = self._build_predicate(kind, this, self._parse_bitwise())
        return this

    def _parse_bitwise(self) -> Any:
        values = [self._parse_term()]
        waiting: list[type[exp.Binary]] = []
        while (kind := self._take_bits()) is not None:
            while waiting and _BITS[waiting[-1]] >= _BITS[kind]:
                self._join_last(values, waiting)
            waiting.append(kind)
            values.append(self._parse_term())
        while waiting:
            self._join_last(values, waiting)
        return values[0]

    def _take_bits(self) -> type[exp.Binary] | None:
        if self._match_set(self.BITWISE):
            return self.BITWISE[self._prev.token_type]
        if self._match_pair(TokenType.LT, TokenType.LT):
            return exp.BitwiseLeftShift
        if self._match_pair(TokenType.GT, TokenType.GT):
            return exp.BitwiseRightShift
        return None

    def _join_last(self, values: list[Any], waiting: list[type[exp.Binary]]) -> None:
        right, left = values.pop(), values.pop()
        values.append(self.expression(waiting.pop()(this=left, expression=right)))

    def _parse_negative(self) -> Any:
        # To Spark the sign is part of the number: -1::STRING is '-1', and -(1::STRING) a double.
        is_whole = self._curr.token_type is TokenType.NUMBER
        if is_whole and self._next.token_type is TokenType.DCOLON and self._next.start > self._curr.end:
            return self._parse_column_ops(self.expression(exp.Neg(this=self._parse_primary())))
        begin = self._index
        this = self.expression(exp.Neg(this=self._parse_unary()))
        # `1L` has the tokens of 1::BIGINT, all in one place; `.5` has a dot of its own.
        if is_whole or self._tokens[begin].token_type is TokenType.DOT:
            number, *behind = self._tokens[begin if is_whole else begin + 1 : self._index]
            if any(each.token_type is TokenType.DCOLON and each.start > number.start for each in behind):
                self.raise_error("Expected parentheses around the number and its sign")
        return this

    def _parse_join(
        self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None
    ) -> Any:
        if self._curr.token_type is TokenType.COMMA:
            return super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        index = self._index
        method, side, kind = self._parse_join_parts()
        if not self._match(TokenType.JOIN):
            self._retreat(index)
            return None
        join = exp.Join(this=self._parse_table(parse_bracket=parse_bracket, alias_tokens=alias_tokens))
        for part, token in (("method", method), ("side", side), ("kind", kind)):
            if token is not None:
                join.set(part, token.text.upper())
        if self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
        elif self._match(TokenType.USING):
            join.set("using", self._parse_using_identifiers())
        elif method is None and join.args.get("kind") in (None, "INNER", "OUTER"):
            join.set("on", exp.Boolean(this=True))
        join.set("pivots", self._parse_pivots())
        return self.expression(join)
