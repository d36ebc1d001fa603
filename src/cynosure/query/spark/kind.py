"""What a driver of statements opens: one application, and for each statement a session of its own.

A maintainer must not break: a statement's session begins empty: no catalog, no views, no settings of others.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.common.errors import CynosureError
from cynosure.query.spark.config import NAME, make_config
from cynosure.query.spark.failures import to_error
from cynosure.query.spark.java_classes import SESSION, find_class
from cynosure.spark.jars import find_jars
from cynosure.spark.kinds import Ask, JobLink, load
from cynosure.spark.session import open_classic, require_pyspark
from cynosure.spark.wire import Run, Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ISOLATED: Final = "cynosure.query.spark.kind:ISOLATED_SQL"
NATIVE: Final = "cynosure.query.spark.kind:NATIVE_SQL"


class StatementLink(JobLink):
    """One statement in the driver."""

    def close(self) -> None:
        """End what of it may still run, and what Spark is about to begin for it.

        Spark prepares parts of a plan in threads of its own. One that has not begun yet when its statement
        ends would run until its end, for nobody.
        """
        context = self.spark.sparkContext
        context._jsc.sc().cancelJobGroupAndFutureJobs(self.task_id)
        context.cancelJobsWithTag(self.task_id)
        # Else Java would keep it for as long as it has a thread for this one.
        find_class(self.spark, SESSION).clearActiveSession()


class GovernedSql:
    """See `spark.kinds.DriverKind`."""

    def __init__(self, *, needs_iceberg: bool, link: str) -> None:
        self._needs_iceberg = needs_iceberg
        self._link = link

    def open(self, start: Start) -> "SparkSession":
        """The application. Only the native leaf needs Iceberg's jars."""
        require_pyspark()
        # PySpark logs what failed, with values of rows and the user's words.
        logging.disable(logging.CRITICAL)
        settings = start.settings
        jars = tuple(find_jars(settings.jars)) if self._needs_iceberg else ()
        config = make_config(
            settings, scratch=Path(start.scratch), java_options=start.java_options, jars=jars
        )
        return open_classic(settings.master, NAME, config)

    def link(self, spark: "SparkSession", start: Start, run: Run, ask: Ask) -> JobLink:
        """With a session of its own."""
        link: JobLink = load(self._link)(spark.newSession(), run.task_id, ask)
        return link

    def to_error(self, raised: BaseException) -> CynosureError:
        """Without what Spark says of it."""
        return to_error(raised)


ISOLATED_SQL: Final = GovernedSql(needs_iceberg=False, link="cynosure.query.spark.kind:StatementLink")
NATIVE_SQL: Final = GovernedSql(needs_iceberg=True, link="cynosure.query.spark.native_link:NativeLink")
