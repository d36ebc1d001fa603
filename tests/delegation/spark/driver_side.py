"""Driver jobs of tests: they run in the driver's process, beside those of the product."""

import os
from typing import Any

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.port import JobFailed
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.store.port import Receipt

_HERE = "tests.delegation.spark.driver_side"
JOBS = {
    name: f"{_HERE}:{function}"
    for name, function in {
        "test-sql": "run_sql",
        "test-slow": "run_slowly",
        "test-ask": "ask",
        "test-fail": "fail",
        "test-equality-delete": "delete_by_value",
        "test-environment": "show_environment",
        "test-close": "close_early",
        "test-tags": "list_tags",
        "test-workers": "look_at_workers",
    }.items()
}


def run_sql(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    link.open_catalog()
    rows: list[list[Any]] = []
    for statement in parameters["statements"]:
        rows = [list(row) for row in link.spark.sql(statement).collect()]
    return {"rows": rows}


def run_slowly(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Keeps executors busy for as long as it is let."""
    link.progress(TaskProgress("busy", 0))
    return {"count": link.spark.sparkContext.parallelize([0, 1], 2).map(_sleep).count()}


def _sleep(value: int) -> int:
    import time

    time.sleep(120)
    return value


def ask(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    until_us = link.lease(1.0)
    link.receipts([Receipt("b", 3, 4, link.now_us())])
    group = link.spark.sparkContext.getLocalProperty("spark.jobGroup.id")
    described = link.spark.sparkContext.getLocalProperty("spark.job.description")
    return {
        "until_us": until_us,
        "credentials": link.credentials().properties,
        "warehouse": link.catalog().warehouse,
        "group": group,
        "description": described,
        "pid": os.getpid(),
    }


def fail(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    match parameters["how"]:
        case "job-failed":
            raise JobFailed("It is broken", code="BROKEN", status=409, fix="Mend it.", part="axle")
        case "bad-input":
            raise BadInput("It is wrong", field="a.b", fix="Make it right.")
        case "java":
            link.spark.sql("SELECT raise_error('password=hunter2 is wrong')").collect()
        case "refused":
            link.spark.sql("SELECT no_such_column").collect()
    return {}


def show_environment(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    java = link.spark.sparkContext._jvm
    assert java
    return {
        "python": dict(os.environ),
        "java": dict(java.java.lang.System.getenv()),
        "config": dict(link.spark.sparkContext.getConf().getAll()),
    }


def close_early(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """End what the session holds while it is still there to be looked at."""
    statement = f"SELECT count(*) FROM {link.open_catalog()}.{parameters['table']}"
    link.spark.sql(statement).collect()
    link.close()
    try:
        link.spark.sql(statement).collect()
    except Exception:
        return {"is_closed": True}
    return {"is_closed": False}


def list_tags(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Which of the Spark jobs of a compaction can be found by the task."""
    link.open_catalog()
    store = link.spark.sparkContext._jsc.sc().statusStore()

    def list_jobs() -> dict[int, Any]:
        jobs = store.jobsList(None)
        return {jobs.apply(at).jobId(): jobs.apply(at) for at in range(jobs.size())}

    before = list_jobs()
    options = "map('rewrite-all', 'true')"
    call = f"CALL cynosure.system.rewrite_data_files(table => '{parameters['table']}', options => {options})"
    link.spark.sql(call).collect()
    ran = [job for number, job in list_jobs().items() if number not in before]
    return {
        "jobs": len(ran),
        "tagged": sum(job.jobTags().contains(link.task_id) for job in ran),
        "groups": sum(job.jobGroup().get() == link.task_id for job in ran if job.jobGroup().isDefined()),
    }


def delete_by_value(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Commit an equality delete to a table of local files. Spark itself never writes any; Flink does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    catalog = link.open_catalog()
    java = link.spark.sparkContext._jvm
    assert java
    spark = link.spark._jsparkSession
    java.org.apache.spark.sql.SparkSession.setActiveSession(spark)
    name = f"{catalog}.{parameters['table']}"
    table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark, name)
    field = table.schema().findField("id")
    place = table.locationProvider().newDataLocation(f"eq-{parameters['value']}.parquet")
    path = place.removeprefix("file:")
    column = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": str(field.fieldId())})
    pq.write_table(pa.table([[parameters["value"]]], schema=pa.schema([column])), path)
    ids = link.spark.sparkContext._gateway.new_array(java.int, 1)  # type: ignore[union-attr]
    ids[0] = field.fieldId()
    deletes = (
        java.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(ids)
        .withPath(place)
        .withFormat("PARQUET")
        .withFileSizeInBytes(os.path.getsize(path))
        .withRecordCount(1)
        .build()
    )
    table.newRowDelta().addDeletes(deletes).commit()
    return {}


def look_at_workers(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """What Python's workers have when a task begins, and what looking for changed modules costs them."""
    return {"workers": link.spark.sparkContext.parallelize([0, 1], 2).map(_look).collect()}


def _look(_: int) -> dict[str, Any]:
    import importlib
    import sys
    import zipimport

    archives = zipimport._zip_directory_cache  # type: ignore[attr-defined]
    before = {path: id(listed) for path, listed in archives.items()}
    importlib.invalidate_caches()
    return {
        "archives": sorted(path.rsplit("/", 1)[1] for path in before),
        "read_again": [path for path, listed in archives.items() if id(listed) != before.get(path)],
        "is_ready": "cynosure.delegation.jobs.purge.on_spark" in sys.modules,
    }
