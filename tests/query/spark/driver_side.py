"""Jobs of tests in the driver of statements."""

import os
import threading
from typing import Any

import msgspec

from cynosure.query.spark.jobs import QueryOrder, _open
from cynosure.spark.kinds import JobLink

JOBS = {
    "test-raw": "tests.query.spark.driver_side:run_raw",
    "test-look": "tests.query.spark.driver_side:look",
    "test-running": "tests.query.spark.driver_side:count_running",
    "test-leaves": "tests.query.spark.test_contract:look_at_leaves",
    "test-settings": "tests.query.spark.test_contract:tell_tasks",
}


def run_raw(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Text that no checked tree was made to."""
    return {"rows": [list(row) for row in _open(link, msgspec.convert(parameters, QueryOrder)).collect()]}


def look(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """What the application and a session know."""
    session = link.spark
    java: Any = session.sparkContext._jvm
    return {
        "config": dict(session.sparkContext.getConf().getAll()),
        "session": {row["key"]: row["value"] for row in session.sql("SET").collect()},
        "catalogs": [row[0] for row in session.sql("SHOW CATALOGS").collect()],
        "tables": [row[1] for row in session.sql("SHOW TABLES").collect()],
        "python": dict(os.environ),
        "java": dict(java.java.lang.System.getenv()),
    }


def count_running(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """What of all statements runs: Spark's tasks and jobs, and our threads."""
    context: Any = link.spark.sparkContext._jsc.sc()
    return {
        "tasks": int(context.taskScheduler().runningTasksByExecutors().apply("driver")),
        "jobs": len(context.statusTracker().getActiveJobIds()),
        "threads": sum(each.name.startswith("cynosure-rows") for each in threading.enumerate()),
    }
