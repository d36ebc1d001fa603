"""The isolated leaf: executors get scan tasks from the broker, and nothing of them is in Spark's hands.

A maintainer must not break: the function that goes to executors holds ids, tokens and the broker's address;
no file, no filter, no credential.
"""

from typing import TYPE_CHECKING

from cynosure.query.spark.leaf import LeafContext, LeafRelation
from cynosure.query.spark.opaque import make_opaque
from cynosure.query.worker.mapped import make_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cynosure.spark.kinds import JobLink


class IsolatedLeaf:
    """See `Leaf`."""

    def build(
        self, session: "SparkSession", relation: LeafRelation, context: LeafContext, link: "JobLink"
    ) -> "DataFrame":
        """One partition per fragment; the scan runs in Python's workers."""
        from pyspark.sql.types import StructType as Schema  # noqa: PLC0415 - an extra

        count = len(relation.fragments)
        schema = Schema.fromJson(relation.schema)
        if not count:
            return make_empty(session, relation)
        read = make_reader(
            context.address,
            context.ca_pem,
            context.query_id,
            list(relation.fragments),
            relation.tokens,
            relation.arrow_schema,
        )
        # Exactly one row in each of `count` partitions: its number is the fragment's place.
        frame = session.range(0, count, 1, count).mapInArrow(read, schema)  # type: ignore[arg-type]  # it gives an iterator
        rows = frame._jdf.queryExecution().toRdd()
        return make_opaque(session, rows, frame._jdf.schema(), relation.size_bytes, relation.view)


def make_empty(session: "SparkSession", relation: LeafRelation) -> "DataFrame":
    """A leaf without rows, in one partition, which Spark finds out only when it runs.

    A plan that knows of no rows leaves out what would fail elsewhere in the statement, and so tells whether
    any file holds a value that was asked for, in hidden rows too.
    """
    from pyspark.sql.functions import col, lit  # noqa: PLC0415 - an extra
    from pyspark.sql.types import StructType as Schema  # noqa: PLC0415 - an extra

    columns = [lit(None).cast(each.dataType).alias(each.name) for each in Schema.fromJson(relation.schema)]
    frame = session.range(0, 1, 1, 1).filter(col("id") < 0).select(*columns)
    rows = frame._jdf.queryExecution().toRdd()
    return make_opaque(session, rows, frame._jdf.schema(), relation.size_bytes, relation.view)
