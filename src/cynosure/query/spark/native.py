"""The native leaf: Iceberg's own reader, below a barrier that the user's statement does not see through.

    inner session   table ─► row filter and predicates ─► masks ─► columns      planned here, literals only
    ── the barrier: an RDD of rows ──────────────────────────────────────────
    outer session   a leaf with a schema and a size; the user's statement over it

The inner session has no catalog and no settings that are secret: the table is made from its metadata, and its
files are reached with credentials that are in Java's memory only. Rows come from `executedPlan().execute()`,
which holds no settings; nothing is run in the inner session.

Rests on internal classes of Spark and Iceberg; `tests/query/spark/native/test_contract.py` holds them to what
is used here.

A maintainer must not break: the filter comes first and on original values, then masks; neither is in the
user's plan; and what the inner session gives has exactly the types of the isolated leaf.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cynosure.iceberg.schema import decode_schema
from cynosure.query.errors import NotReadable, QueryCancelled
from cynosure.query.scan.masks import is_touched
from cynosure.query.spark.isolated import IsolatedLeaf, make_empty
from cynosure.query.spark.java_classes import find_class, find_object
from cynosure.query.spark.leaf import LeafContext, LeafRelation
from cynosure.query.spark.native_files import TableFiles
from cynosure.query.spark.native_filter import Condition
from cynosure.query.spark.native_link import NativeLink
from cynosure.query.spark.native_masks import Masks
from cynosure.query.spark.native_plan import require_no_casts
from cynosure.query.spark.native_table import NativeTable
from cynosure.query.spark.opaque import make_opaque, to_rows
from cynosure.query.stream.frames import ROW_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from cynosure.spark.kinds import JobLink

_ICEBERG: Final = "org.apache.iceberg"
_RELATION: Final = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
_NO_FILES: Final = frozenset({"LocalTableScanExec", "EmptyRelationExec"})
"""Leaves of a plan when no row can pass."""
_NOT_SHAPE: Final = frozenset({"nullable", "containsNull", "valueContainsNull", "metadata"})


class NativeLeaf:
    """See `Leaf`."""

    def build(
        self, session: "SparkSession", relation: LeafRelation, context: LeafContext, link: "JobLink"
    ) -> "DataFrame":
        """Planned completely; rows come when the statement runs."""
        if not relation.table:
            return IsolatedLeaf().build(session, relation, context, link)
        if not isinstance(link, NativeLink):
            raise NotReadable("A driver that is not for native scans was asked for one")
        table = msgspec.convert(relation.table, NativeTable)
        files = link.open_files(relation.view, table)
        governed = govern(_open(link.inner, table, files, relation.view), table)
        if shape_of(msgspec.json.decode(governed._jdf.schema().json())) != shape_of(relation.schema):
            raise NotReadable("Iceberg reads a column as another type than it has here")
        # What may be NULL is for the relation to say: everything, as a mask may make it so.
        types = find_class(session, "org.apache.spark.sql.types.DataType")
        schema = types.fromJson(msgspec.json.encode(relation.schema).decode())
        plan = governed._jdf.queryExecution().executedPlan()
        rows = plan.execute()
        files.check(_paths(plan) if files.is_local else ())
        if link.is_cancelled:
            raise QueryCancelled("The statement was ended")
        if not rows.getNumPartitions():
            return make_empty(session, relation)
        return make_opaque(session, rows, schema, relation.size_bytes, relation.view)


def govern(frame: "DataFrame", table: NativeTable) -> "DataFrame":
    """The rows and columns that the user may see."""
    schema = decode_schema(table.schema)
    by_id = {field.id: field for field in schema.fields}
    row_filter = Condition(table.row_filter, schema, what="row filter")
    predicates = Condition(table.predicates, schema, what="predicates")
    if any(is_touched(each, table.masks, schema) for each in predicates.fields):
        raise NotReadable("A predicate looks at a masked column")
    conditions = [each for each in (row_filter, predicates) if not each.is_always_true]
    if conditions:
        frame = _filter(frame, conditions)
    masks = Masks(table.masks, schema, table.salt)
    shown = [masks.show(by_id[each]) for each in table.columns]
    return frame.select(*(shown or [_row()]))


def _filter(frame: "DataFrame", conditions: list[Condition]) -> "DataFrame":
    sample = " AND ".join(each.sample for each in conditions)
    text = " AND ".join(each.text for each in conditions)
    filtered = frame.filter(sample)
    require_no_casts(filtered._jdf.queryExecution().analyzed())
    return filtered if sample == text else frame.filter(text)


def _row() -> "Column":
    """What stands for a row without columns."""
    from pyspark.sql.functions import lit  # noqa: PLC0415 - an extra

    return lit(0).cast("byte").alias(ROW_COLUMN)


def _open(inner: "SparkSession", table: NativeTable, files: TableFiles, name: str) -> "DataFrame":
    """A table of Iceberg as a frame. It has the view's name: names of tables are nobody's business here."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - an extra

    metadata = find_class(inner, f"{_ICEBERG}.TableMetadataParser").fromJson(table.metadata)
    files.check(_metadata_paths(metadata.currentSnapshot(), files))
    operations = find_class(inner, f"{_ICEBERG}.StaticTableOperations")(metadata, files.java)
    base = find_class(inner, f"{_ICEBERG}.BaseTable")(operations, name)
    source = find_class(inner, f"{_ICEBERG}.spark.source.SparkTable")(base)
    nothing = find_object(inner, "scala.None")
    relation = find_class(inner, _RELATION).create(source, nothing, nothing)
    return DataFrame(to_rows(inner, relation), inner)


def shape_of(schema: Any) -> Any:
    """Names and types of Spark's JSON of a schema, in their order."""
    if isinstance(schema, list):
        return [shape_of(each) for each in schema]
    if isinstance(schema, dict):
        return {name: shape_of(value) for name, value in schema.items() if name not in _NOT_SHAPE}
    return schema


def _metadata_paths(snapshot: Any, files: TableFiles) -> Iterator[str]:
    """Of the files that say which files there are; each is looked at before it is opened."""
    if files.is_local:
        if snapshot.manifestListLocation():
            yield str(snapshot.manifestListLocation())
        for manifest in _each(snapshot.allManifests(files.java)):
            yield str(manifest.path())


def _paths(plan: Any) -> Iterator[str]:
    """Of all files that are about to be read."""
    for leaf in _each(plan.collectLeaves()):
        if leaf.getClass().getSimpleName() in _NO_FILES:
            continue
        for partition in _each(leaf.inputPartitions()):
            for task in _each(partition.taskGroup().tasks()):
                for file in (task.file(), *_each(task.deletes())):
                    yield str(file.location())


def _each(things: Any) -> Iterator[Any]:
    """Of a collection of Java or Scala; not all of them are lists to Python."""
    found = things.iterator()
    while found.hasNext():
        yield found.next()
