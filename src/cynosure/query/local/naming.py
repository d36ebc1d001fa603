"""Names of columns that the statement does not name, as Spark makes them: `sum(a)`, `(i + 1)`.

Only what people see: nothing is decided by it. Where Spark's way is not known, the expression's own text is
the name.
"""

from typing import Final

from sqlglot import exp

_OPERATORS: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}

_WORDED: Final[frozenset[type[exp.Expression]]] = frozenset({exp.Case, exp.If, exp.Extract, exp.Trim})
"""Functions with words between their arguments."""


def name_of_column(node: exp.Expression) -> str:
    """How an expression shows in a name."""
    if isinstance(node, exp.Paren):
        return name_of_column(node.this)
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Subquery):
        return "scalarsubquery()"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    return _shown(node)


def name_of_item(node: exp.Expression) -> str:
    """The name of an item of SELECT: a column that is only cast keeps its own."""
    is_cast = isinstance(node, exp.Cast) and not node.args.get("safe")
    return node.this.name if is_cast and isinstance(node.this, exp.Column) else name_of_column(node)


def _shown(node: exp.Expression) -> str:  # noqa: PLR0911 - one form per line
    kind = type(node)
    if kind in _OPERATORS and not isinstance(node.expression, exp.Interval):
        return f"({name_of_column(node.this)} {_OPERATORS[kind]} {name_of_column(node.expression)})"
    if kind is exp.NEQ:
        return f"(NOT ({name_of_column(node.this)} = {name_of_column(node.expression)}))"
    if kind is exp.Neg:
        return f"(- {name_of_column(node.this)})"
    if kind is exp.Not:
        return f"(NOT {name_of_column(node.this)})"
    if kind is exp.Is and isinstance(node.expression, exp.Null):
        return f"({name_of_column(node.this)} IS NULL)"
    if kind is exp.Cast or (kind is exp.TryCast and not node.args.get("safe")):
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            return node.sql(dialect="spark")
        return f"CAST({name_of_column(node.this)} AS {node.args['to'].sql(dialect='spark')})"
    if kind is exp.Between:
        parts = (node.this, node.args["low"], node.args["high"])
        return f"between({', '.join(name_of_column(each) for each in parts)})"
    if kind is exp.In and not node.args.get("query"):
        options = ", ".join(name_of_column(each) for each in node.expressions)
        return f"({name_of_column(node.this)} IN ({options}))"
    if kind is exp.Like and not node.args.get("negate"):
        return f"{name_of_column(node.this)} LIKE {name_of_column(node.expression)}"
    if kind is exp.DPipe:
        return f"concat({name_of_column(node.this)}, {name_of_column(node.expression)})"
    if kind is exp.Filter:
        return f"{name_of_column(node.this)} FILTER (WHERE {name_of_column(node.expression.this)})"
    if kind is exp.Distinct:
        return f"DISTINCT {', '.join(name_of_column(each) for each in node.expressions)}"
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    if issubclass(kind, exp.Func) and kind not in _WORDED:
        return _call(node)
    return node.sql(dialect="spark")


def _call(node: exp.Expression) -> str:
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql(dialect="spark").split("(")[0]
    parts = [
        part
        for key, value in node.args.items()
        if not (key == "this" and isinstance(node, exp.Anonymous))
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expression)
    ]
    return f"{name.lower()}({', '.join(name_of_column(each) for each in parts)})"
