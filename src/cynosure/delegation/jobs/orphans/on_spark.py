"""Orphans of a large table, found on Spark's executors. Runs in the driver's process.

A maintainer must not break: as for purges (`purge/on_spark.py`), the driver holds no paths but a few to tell.
"""

from functools import partial
from typing import Any

import msgspec

from cynosure.common.delegated.record import TaskProgress
from cynosure.delegation.jobs.live_files.on_spark import Reach, expand_files, join_rows, list_files
from cynosure.delegation.jobs.live_files.references import read_references
from cynosure.delegation.jobs.purge.instructions import PurgeInstructions
from cynosure.delegation.jobs.purge.on_spark import Writing, collect_plan, make_reach, write_batches
from cynosure.delegation.spark.link import DriverLink


def find_orphans(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Write batches of old files that nothing names; the plan, whose marker the worker writes."""
    reach = make_reach(link, parameters)
    context = link.spark.sparkContext
    link.progress(TaskProgress("listing on Spark", 0))
    rows = [list_files(context, reach)]
    for table in parameters["tables"]:
        own = Reach(
            tuple(table["places"]), reach.without, table["properties"] or reach.properties, reach.places
        )
        references = read_references(table["metadata"], table["metadata_location"])
        rows.append(expand_files(context, own, references, with_deleted=False))
    writing = Writing(
        reach,
        f"{parameters['generation']}-0",
        parameters["batch_files"],
        PurgeInstructions(is_dry_run=parameters["is_dry_run"]),
        parameters["before_us"],
    )
    written = join_rows(context, rows).mapPartitionsWithIndex(partial(write_batches, writing)).collect()
    plan: dict[str, Any] = msgspec.to_builtins(collect_plan(parameters["generation"], written))
    return plan
