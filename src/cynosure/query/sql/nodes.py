"""Nodes of sqlglot's tree that a query may have, and which parts of each.

A maintainer must not break: a node is allowed only with parts that are named here. Parsers put what changes
the meaning into parts (`negate` of LIKE, `locks` of FOR UPDATE), and a part that was overlooked is either
lost on the way to the engine or does something that nobody thought of.
"""

from typing import Final

from sqlglot import exp
from sqlglot.expressions import DType

_MODIFIERS: Final = "with_ order sort cluster distribute limit offset"
_BINARY: Final = "this expression"

_PLAIN: Final[dict[type[exp.Expr], str]] = {
    # Queries.
    exp.Select: f"{_MODIFIERS} expressions distinct from_ joins laterals where group having windows hint",
    exp.Subquery: f"{_MODIFIERS} this alias pivots joins laterals",
    exp.Union: f"{_MODIFIERS} this expression distinct",
    exp.Except: f"{_MODIFIERS} this expression distinct",
    exp.Intersect: f"{_MODIFIERS} this expression distinct",
    exp.Values: f"{_MODIFIERS} expressions alias pivots",
    exp.With: "expressions",
    exp.CTE: "this alias",
    exp.From: "this",
    exp.Where: "this",
    exp.Having: "this",
    exp.Group: "expressions rollup cube grouping_sets all",
    exp.Rollup: "expressions",
    exp.Cube: "expressions",
    exp.GroupingSets: "expressions",
    exp.Order: "expressions",
    exp.Sort: "expressions",
    exp.Cluster: "expressions",
    exp.Distribute: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Offset: "expression",
    exp.Distinct: "expressions",
    exp.Join: "this on using kind side method",
    exp.Lateral: "this view outer alias ordinality",
    exp.Table: "this db catalog alias joins laterals pivots version",
    exp.TableAlias: "this columns",
    exp.Version: "this expression kind",
    exp.Pivot: (
        "expressions fields unpivot alias columns include_nulls default_on_null identify_pivot_strings "
        "prefixed_pivot_columns pivot_column_naming value_columns_first"
    ),
    exp.PivotAlias: "this alias",
    # Names and values.
    exp.Identifier: "this quoted",
    exp.Column: "this table db catalog",
    exp.Dot: _BINARY,
    exp.Star: "except_",
    exp.Alias: "this alias",
    exp.Aliases: "this expressions",
    exp.Literal: "this is_string",
    exp.HexString: "this",
    exp.Boolean: "this",
    exp.Null: "",
    exp.Var: "this",
    exp.Tuple: "expressions",
    exp.Paren: "this",
    exp.Bracket: "this expressions offset safe",
    exp.Interval: "this unit",
    exp.IntervalSpan: _BINARY,
    exp.DataType: "this expressions nested",
    exp.DataTypeParam: "this",
    exp.ColumnDef: "this kind",
    # Operators.
    **dict.fromkeys(
        (
            *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
            *(exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.Is),
            *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
            *(exp.Escape,),
        ),
        _BINARY,
    ),
    exp.Div: f"{_BINARY} typed safe",
    exp.DPipe: f"{_BINARY} safe",
    exp.Like: f"{_BINARY} negate",
    exp.ILike: f"{_BINARY} negate",
    exp.RegexpLike: _BINARY,
    exp.Not: "this",
    exp.Neg: "this",
    exp.BitwiseNot: "this",
    exp.In: "this expressions query",
    exp.Between: "this low high",
    exp.Any: "this",
    exp.All: "this",
    exp.Exists: "this",
    exp.Case: "this ifs default",
    exp.Cast: "this to _type",
    exp.TryCast: "this to _type safe requires_string",
    # Calls.
    exp.Anonymous: "this expressions",
    exp.Lambda: "this expressions",
    exp.Window: "this partition_by order spec alias over",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.Filter: _BINARY,
    exp.WithinGroup: _BINARY,
    exp.IgnoreNulls: "this",
    exp.RespectNulls: "this",
    exp.Extract: _BINARY,
    exp.Trim: "this expression position",
    exp.StrPosition: "this substr position",
    exp.Overlay: "this expression from_ for_",
    exp.Ceil: "this decimals",
    exp.Floor: "this decimals",
    exp.CurrentDate: "",
    exp.CurrentTimestamp: "",
    exp.CurrentUser: "",
    exp.SessionUser: "",
}

_TYPED: Final[dict[str, str]] = {
    "Abs": "this",
    "AnyValue": "this",
    "Array": "expressions",
    "ArrayContains": _BINARY,
    "Avg": "this",
    "LogicalAnd": "this",
    "LogicalOr": "this",
    "Cbrt": "this",
    "Coalesce": "this expressions",
    "Concat": "expressions safe coalesce",
    "ConcatWs": "expressions safe coalesce flatten",
    "Contains": _BINARY,
    "Cos": "this",
    "Count": "this expressions big_int",
    "CountIf": "this",
    "CumeDist": "",
    "DenseRank": "",
    "EndsWith": _BINARY,
    "Exp": "this",
    "Explode": "this",
    "ExplodeOuter": "this",
    "_ExplodeOuter": "this",
    "FirstValue": "this",
    "Greatest": "this expressions ignore_nulls",
    "Grouping": "expressions",
    "GroupingId": "expressions",
    "If": "this true false",
    "Inline": "this",
    "Lag": "this offset default",
    "LastValue": "this",
    "Lead": "this offset default",
    "Least": "this expressions ignore_nulls",
    "Left": _BINARY,
    "Length": "this",
    "Ln": "this",
    "Lower": "this",
    "Max": "this",
    "Min": "this",
    "NthValue": "this offset",
    "Ntile": "this",
    "Nullif": _BINARY,
    "PercentRank": "",
    "Pi": "",
    "Posexplode": "this",
    "PosexplodeOuter": "this",
    "Pow": _BINARY,
    "Rank": "",
    "Repeat": "this times",
    "Replace": "this expression replacement",
    "Reverse": "this",
    "Right": _BINARY,
    "Round": "this decimals",
    "RowNumber": "",
    "Sign": "this",
    "Sin": "this",
    "Sqrt": "this",
    "StartsWith": _BINARY,
    "Stddev": "this",
    "StddevPop": "this",
    "StddevSamp": "this",
    "Substring": "this start length",
    "Sum": "this",
    "Tan": "this",
    "Upper": "this",
    "VariancePop": "this",
    "Variance": "this",
}
"""Nodes of `TYPED_FUNCTIONS`, by name: some of them sqlglot keeps to itself."""

PARTS: Final[dict[str, frozenset[str]]] = {
    **{kind.__name__: frozenset(parts.split()) for kind, parts in _PLAIN.items()},
    **{name: frozenset(parts.split()) for name, parts in _TYPED.items()},
}
"""Parts of a node that may be there, by the name of its class."""

TYPES: Final = frozenset(
    {
        *(DType.BOOLEAN, DType.TINYINT, DType.SMALLINT, DType.INT, DType.BIGINT, DType.FLOAT, DType.DOUBLE),
        *(DType.DECIMAL, DType.TEXT, DType.VARCHAR, DType.CHAR, DType.BINARY, DType.DATE, DType.TIMESTAMP),
        *(DType.TIMESTAMPTZ, DType.TIMESTAMPLTZ, DType.TIMESTAMPNTZ, DType.ARRAY, DType.MAP, DType.STRUCT),
    }
)
"""That values can be cast to, besides intervals."""
