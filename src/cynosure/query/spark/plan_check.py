"""The last look at what Spark is about to run: a query, over our leaves and nothing else.

Text that gets here was generated from a checked tree. This is defence in depth: whatever got through there
finds its end here.

A maintainer must not break: what is not listed is refused.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from cynosure.query.errors import NotAllowed

_PLANS: Final = (
    "org.apache.spark.sql.catalyst.plans.logical.",
    "org.apache.spark.sql.execution.",
    "org.apache.spark.sql.catalyst.streaming.",
    "org.apache.spark.sql.catalyst.analysis.",
)
_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_LEAVES: Final = "LogicalRDD LocalRelation OneRowRelation Range CTERelationRef UnionLoopRef"
"""Ours, and rows that are in the text."""
_NODES: Final = (
    "Aggregate CTERelationDef Deduplicate Distinct Except Expand Filter Generate GlobalLimit Intersect Join "
    "LateralJoin LocalLimit Offset Pivot Project RebalancePartitions Repartition RepartitionByExpression "
    "ResolvedHint Sample Sort SubqueryAlias Tail Transpose Union UnionLoop Unpivot View Window WithCTE "
    "WithWindowDefinition"
)
_UNRESOLVED: Final = (
    "UnresolvedRelation UnresolvedWith UnresolvedSubqueryColumnAliases UnresolvedInlineTable "
    "UnresolvedTableValuedFunction UnresolvedHaving UnresolvedHint UnresolvedTVFAliases UnresolvedAlias "
    "UnresolvedAttribute UnresolvedFunction UnresolvedStar UnresolvedExtractValue UnresolvedOrdinal "
    "UnresolvedNamedLambdaVariable UnresolvedStarExceptOrReplace UnresolvedGenerator MultiAlias "
    "TempResolvedColumn"
)
"""Before names are known."""
_KNOWN_PLANS: Final = frozenset(f"{_LEAVES} {_NODES} {_UNRESOLVED}".split())
_REFUSED_EXPRESSIONS: Final = (
    "CallMethodViaReflection",
    "Reflect",
    "UDF",
    "UDAF",
    "UDTF",
    "ScalaAggregator",
    "InputFile",
    "Hive",
    "CurrentUser",
    "SessionUser",
    "CurrentCatalog",
    "CurrentDatabase",
    "SparkVersion",
    "VariableReference",
    "JavaMethod",
    "FileSourceMetadata",
    "MetadataAttribute",
)
_NO_QUERY: Final = "Only queries over governed tables run on Spark"


def check_plan(plan: Any) -> None:
    """`NotAllowed` unless a logical plan (an object of Java) is made of known parts only."""
    for name in _classes(json.loads(plan.toJSON())):
        short = name.rpartition(".")[2].rpartition("$")[2]
        if name.startswith(_PLANS):
            if short not in _KNOWN_PLANS:
                raise NotAllowed(_NO_QUERY, fix="Leave it out.", part=short)
        elif not name.startswith(_EXPRESSIONS):
            raise NotAllowed(_NO_QUERY, fix="Leave it out.", part=short)
        elif any(each in short for each in _REFUSED_EXPRESSIONS):
            raise NotAllowed("Governed SQL does not have this function", fix="Leave it out.", part=short)


def _classes(value: Any) -> Iterator[str]:
    """Of all nodes, those within others' arguments too."""
    if isinstance(value, dict):
        name = value.get("class")
        if isinstance(name, str) and "num-children" in value:
            yield name
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _classes(each)
