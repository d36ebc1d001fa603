"""Spark's SQL as sqlglot reads it, with its functions left as they were written.

sqlglot knows many functions by other names and other meanings than Spark: it writes `date_sub(a, 1)` as
`date_add(a, 1 * -1)`, `percentile_cont` as `percentile_approx`, `space(n)` as `repeat`. What engines get
would not be what the user asked. So only functions that come out exactly as they went in have nodes of their
own; all others are `Anonymous`, by name.

A maintainer must not break: text to tree to text changes nothing but spelling. A function gets into
`TYPED_FUNCTIONS` only if sqlglot's Spark dialect writes it back by the same name with the same arguments,
whatever the arguments are.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from cynosure.query.sql.grammar import SparkGrammar

# It logs what it stumbles over, and that is somebody's statement.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

TYPED_FUNCTIONS: Final = frozenset(
    [
        "abs",
        "any_value",
        "array",
        "array_contains",
        "avg",
        "bool_and",
        "bool_or",
        "cbrt",
        "coalesce",
        "concat",
        "concat_ws",
        "contains",
        "cos",
        "count",
        "count_if",
        "cume_dist",
        "dense_rank",
        "endswith",
        "exp",
        "explode",
        "explode_outer",
        "first_value",
        "greatest",
        "grouping",
        "grouping_id",
        "if",
        "inline",
        "lag",
        "last_value",
        "lead",
        "least",
        "left",
        "length",
        "ln",
        "lower",
        "max",
        "min",
        "nth_value",
        "ntile",
        "nullif",
        "percent_rank",
        "pi",
        "posexplode",
        "posexplode_outer",
        "power",
        "rank",
        "repeat",
        "replace",
        "reverse",
        "right",
        "round",
        "row_number",
        "sign",
        "sin",
        "sqrt",
        "startswith",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "substring",
        "sum",
        "tan",
        "upper",
        "var_pop",
        "variance",
    ]
)
"""With nodes of sqlglot; see above."""

_OWN_SYNTAX: Final = (
    "CAST",
    "TRY_CAST",
    "EXTRACT",
    "TRIM",
    "SUBSTRING",
    "SUBSTR",
    "POSITION",
    "OVERLAY",
    "CEIL",
    "FLOOR",
)
"""Functions with words between their arguments: `EXTRACT(year FROM d)`."""


def _with_place(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of `?`, `:name` and their like, which then remember where they stand: order matters for `?`."""

    def read_with_place(parser: Any) -> Any:
        token = parser._prev
        found = read(parser)
        return found if found is None else found.update_positions(token)

    return read_with_place


class GovernedSpark(Spark):
    """What statements of users are read with. What engines get is written in `WRITTEN`."""

    class Tokenizer(Spark.Tokenizer):  # noqa: D106
        # As of Spark 4, 'it''s' is one text with a quote in it.
        STRING_ESCAPES = ["\\", "'"]  # noqa: RUF012 - what sqlglot's metaclass expects

    class Parser(SparkGrammar):  # noqa: D106
        FUNCTIONS = {  # noqa: RUF012
            name.upper(): SparkParser.FUNCTIONS[name.upper()]
            for name in sorted(TYPED_FUNCTIONS)
            if name.upper() in SparkParser.FUNCTIONS
        }

        # sqlglot would leave out arguments that there are too many of.
        def _parse_ceil_floor(self, expr_type: Any) -> Any:
            arguments = self._parse_csv(self._parse_lambda)
            if len(arguments) not in (1, 2):
                self.raise_error("Expected one or two arguments")
            return expr_type(this=arguments[0], decimals=arguments[1] if len(arguments) > 1 else None)

        # Those of Spark's grammar, and whole: `FROM t version` is a name for t.
        VERSION_PHRASES = {  # noqa: RUF012
            (*before, word, "AS", "OF"): kind
            for before in ((), ("FOR",))
            for kind, words in (
                ("VERSION", ("VERSION", "SYSTEM_VERSION")),
                ("TIMESTAMP", ("TIMESTAMP", "SYSTEM_TIME")),
            )
            for word in words
        }
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items()
            # Clauses, which are not allowed; the functions of these names are as any other.
            if name not in ("TRANSFORM", "ANY")
        }
        PLACEHOLDER_PARSERS = {  # noqa: RUF012
            kind: _with_place(read) for kind, read in SparkParser.PLACEHOLDER_PARSERS.items()
        }
        FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX}  # noqa: RUF012


class WrittenSpark(Spark):
    """What checked trees are written in: sqlglot's own `spark`, with every WITH where it was."""

    class Generator(SparkGenerator):  # noqa: D106
        # sqlglot moves all of them to the top, as old Sparks need it: two of one name (those of a view that
        # is named twice) are an error there, and one that names columns around it finds none.
        EXPRESSIONS_WITHOUT_NESTED_CTES = set()  # noqa: RUF012 - what sqlglot's metaclass expects


DIALECT: Final = GovernedSpark()
WRITTEN: Final = WrittenSpark()
