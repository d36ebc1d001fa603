"""Spark's plan of a statement, without what it must not show.

A maintainer must not break: sizes of leaves count hidden rows too, and arguments of a leaf tell how it is
read; neither is shown.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cynosure.query.spark.java_classes import find_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAF: Final = re.compile(r"Scan ExistingRDD ?(\w*)")
_HIDDEN: Final = re.compile(r"^(Arguments|Statistics|Location|ReadSchema|Format|Batched|PushedFilters)\b")
_RDD: Final = re.compile(r"\w*RDD\[\d+\][^,\n]*")


def explain_plan(frame: "DataFrame") -> str:
    """As Spark shows it, `formatted`; leaves by the names of their views."""
    modes = find_class(frame.sparkSession, "org.apache.spark.sql.execution.ExplainMode")
    told = frame._jdf.queryExecution().explainString(modes.fromString("formatted"))
    return scrub("\n".join(_lines(str(told))))


def scrub(text: str) -> str:
    """Without RDDs, which say where in our code they come from."""
    return _RDD.sub("…", text)


def _lines(text: str) -> Iterator[str]:
    is_leaf = False
    for line in text.splitlines():
        if re.match(r"\(\d+\) ", line):
            is_leaf = _LEAF.search(line) is not None
        if not (is_leaf and _HIDDEN.match(line)):
            yield _LEAF.sub(lambda found: f"Scan {found[1] or 'rows'} ", line)
