"""The last look at what the inner session is about to read, before a row is.

A maintainer must not break: a condition compares columns as they are. A cast of a column can fail on a row
that nobody may see, and the error tells of it.
"""

import json
from typing import Any, Final

from cynosure.common.errors import Misconfigured
from cynosure.query.errors import NotReadable

TESTED: Final = "4.1."
"""Spark's versions that the internal classes used here are known of."""
_COLUMNS: Final = frozenset({"AttributeReference", "GetStructField"})
_CAST: Final = "Cast"
_PARTS: Final = (
    "And Or Not EqualTo LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In IsNull IsNotNull IsNaN "
    "StartsWith Concat Literal UnaryMinus DateFromUnixDate MicrosToTimestamp"
)
"""What `native_filter` writes; others might hide a cast behind another form."""
_KNOWN: Final = _COLUMNS | frozenset(_PARTS.split())


def require_tested_spark(version: str) -> None:
    """`Misconfigured` for a version of Spark whose inside is not known."""
    if not version.startswith(TESTED):
        raise Misconfigured(
            "The native scan works inside of Spark, and is not known to do so in this version",
            field="query.spark.scan",
            fix=f"Set query.spark.scan=isolated, or install pyspark {TESTED}x.",
            version=version,
        )


def require_no_casts(plan: Any) -> None:
    """`NotReadable` when a filter of an analyzed plan (an object of Java) casts a column, or could."""
    for node in json.loads(plan.toJSON()):
        if _short(node) == "Filter":
            _check(node["condition"])


def _check(nodes: list[dict[str, Any]]) -> None:
    """The nodes of a condition come in the order of their depth, children behind their parents."""
    for at, node in enumerate(nodes):
        is_cast = _short(node) == _CAST
        below = _below(nodes, at) if is_cast else ()
        if not is_cast and _short(node) not in _KNOWN:
            raise NotReadable("A condition has a part that is not evaluated by scans")
        if any(_short(each) in _COLUMNS for each in below):
            raise NotReadable("A condition would change the values of a column before it compares")


def _below(nodes: list[dict[str, Any]], at: int) -> list[dict[str, Any]]:
    end, pending = at, 1
    while pending:
        pending += nodes[end]["num-children"] - 1
        end += 1
    return nodes[at + 1 : end]


def _short(node: dict[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]
