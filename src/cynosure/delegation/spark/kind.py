"""What a driver of delegated work opens, and what its jobs have.

A maintainer must not break: credentials are set in the session of a job, never in the one that all share.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.common.errors import CynosureError
from cynosure.delegation.spark.java_errors import to_error
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.session import make_config, open_job_session, open_session
from cynosure.spark.jars import find_jars
from cynosure.spark.kinds import Ask
from cynosure.spark.session import require_pyspark
from cynosure.spark.wire import Run, Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE: Final = "cynosure.delegation.spark.kind:DELEGATED"


class DelegatedWork:
    """See `spark.kinds.DriverKind`."""

    def open(self, start: Start) -> "SparkSession":
        """With Iceberg's jars."""
        require_pyspark()
        settings = start.settings
        jars = [] if start.remote else find_jars(settings.jars)
        config = make_config(
            settings, jars=jars, scratch=Path(start.scratch), java_options=start.java_options
        )
        return open_session(settings, config)

    def link(self, spark: "SparkSession", start: Start, run: Run, ask: Ask) -> DriverLink:
        """With a session of its own."""
        session = open_job_session(spark, start.settings)
        return DriverLink(session, run.task_id, ask, is_classic=start.remote is None)

    def to_error(self, raised: BaseException) -> CynosureError:
        """As the worker understands it."""
        return to_error(raised)


DELEGATED: Final = DelegatedWork()
