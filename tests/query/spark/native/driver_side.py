"""Jobs of tests in a driver that reads natively."""

from typing import Any

import msgspec

from cynosure.query.spark.jobs import QueryOrder
from cynosure.query.spark.native import NativeLeaf, _open, govern
from cynosure.query.spark.native_link import NativeLink
from cynosure.query.spark.native_plan import require_no_casts
from cynosure.query.spark.native_table import NativeTable
from cynosure.spark.kinds import JobLink

JOBS = {
    "test-inner": "tests.query.spark.native.driver_side:look_inside",
    "test-casts": "tests.query.spark.native.driver_side:find_casts",
}


def look_inside(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """The plan of the inner session, what is sent to executors of it, and the leaf."""
    assert isinstance(link, NativeLink)
    order = msgspec.convert(parameters, QueryOrder)
    [relation] = order.relations
    table = msgspec.convert(relation.table, NativeTable)
    files = link.open_files(relation.view, table)
    plan: Any = govern(_open(link.inner, table, files, relation.view), table)._jdf.queryExecution()
    rows = plan.executedPlan().execute()
    java: Any = link.spark.sparkContext._jvm
    content = java.java.io.ByteArrayOutputStream()
    java.java.io.ObjectOutputStream(content).writeObject(rows)
    leaf = NativeLeaf().build(link.spark, relation, order.context, link)
    converters = java.scala.jdk.javaapi.CollectionConverters
    return {
        "text": plan.executedPlan().toString(),
        "optimized": plan.optimizedPlan().toString(),
        "serialized": content.toByteArray().hex(),
        "inner": dict(converters.asJava(link.inner._jsparkSession.sessionState().conf().getAllConfs())),
        "leaf": leaf._jdf.queryExecution().optimizedPlan().getClass().getName(),
        "constraints": int(leaf._jdf.queryExecution().optimizedPlan().constraints().size()),
    }


def find_casts(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Whether conditions over a table are taken for casts of its columns."""
    frame = link.spark.createDataFrame([("a", 1, (2,))], "s STRING, i INT, st STRUCT<x: INT>")
    refused = []
    for text in parameters["conditions"]:
        try:
            require_no_casts(frame.filter(text)._jdf.queryExecution().analyzed())
        except Exception as error:
            refused.append([text, type(error).__name__])
    return {"refused": refused}
