"""Filters as the REST protocol sends them: parsed, bound to a schema, negated, written and described.

- `nodes.py`      what a filter is made of
- `parse.py`      both JSON forms of the protocol into nodes, bounded in depth and size
- `encode.py`     nodes into JSON: the current form, or the older one for clients that know no other
- `bind.py`       names into field ids, literals into exact values of the column's type (`convert.py`)
- `negate.py`     the complement, with `not` pushed down as far as that keeps the meaning
- `describe.py`   a printable form without literals
- `fold.py`       how all of them walk a tree

A maintainer must not break: no walk recurses. A filter of a few hundred `or`s is ordinary, and its depth must
not decide whether a server answers.
"""

from cynosure.iceberg.expressions.bind import bind
from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.describe import describe
from cynosure.iceberg.expressions.encode import encode_expression, expression_to_json
from cynosure.iceberg.expressions.negate import negate, rewrite_not
from cynosure.iceberg.expressions.nodes import Expression
from cynosure.iceberg.expressions.parse import parse_expression

__all__ = [
    "BoundExpression",
    "Expression",
    "bind",
    "describe",
    "encode_expression",
    "expression_to_json",
    "negate",
    "parse_expression",
    "rewrite_not",
]
