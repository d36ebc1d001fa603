"""A leaf that Catalyst cannot look into: rows of an RDD, and their size.

Rests on internal classes of Spark (`LogicalRDD`, `Dataset.ofRows`); `tests/query/spark/test_contract.py`
holds them to what is used here.

A maintainer must not break: neither a filter nor a constraint of what is below gets into the user's plan.
"""

from typing import TYPE_CHECKING, Any, Final

from cynosure.query.spark.java_classes import find_class, find_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_PER_ELEMENT: Final = 8
_LEAF: Final = "org.apache.spark.sql.execution.LogicalRDD"
_TYPES: Final = "org.apache.spark.sql.catalyst.types.DataTypeUtils"


def make_opaque(
    session: "SparkSession", rdd: Any, schema: Any, size_bytes: int, name: str = ""
) -> "DataFrame":
    """A leaf in this session over an RDD of Spark's internal rows, with a schema of Java's.

    The size decides between kinds of joins. Without it Spark takes every leaf for endless, and sorts both
    sides of every join. The name is what a plan calls it.
    """
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - an extra

    rdd.setName(name)
    # Statistics cannot be made from Python: Scala's large numbers do not cross. So we take those of a range,
    # which has 8 bytes per element.
    elements = max(size_bytes // _BYTES_PER_ELEMENT, 1)
    statistics = session.range(elements)._jdf.logicalPlan().stats()
    make_leaf, nothing = find_class(session, _LEAF), find_object(session, "scala.None")
    default = find_object(session, _LEAF)
    leaf = make_leaf(
        find_class(session, _TYPES).toAttributes(schema),
        rdd,
        getattr(default, "apply$default$3")(),
        getattr(default, "apply$default$4")(),
        False,
        nothing,
        session._jsparkSession,
        find_class(session, "scala.Some")(statistics),
        # No constraints: they would tell what the row filter is.
        nothing,
    )
    return DataFrame(to_rows(session, leaf), session)


def to_rows(session: "SparkSession", plan: Any) -> Any:
    """A logical plan of Java as a dataset of Java, analyzed."""
    return find_object(session, "org.apache.spark.sql.classic.Dataset").ofRows(session._jsparkSession, plan)
