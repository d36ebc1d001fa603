"""Spark's settings for statements, and those that nobody can change.

A maintainer must not break: whatever `query.spark.config` says, a session reads no files by their paths, has
no catalog and no Hive, shows no pages, encrypts what it spills, and takes text as it is written.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.common.errors import Misconfigured
from cynosure.query.settings import QuerySparkSettings
from cynosure.query.spark.elsewhere import ATTEMPTS, make_settings
from cynosure.spark.environment import is_on_loopback
from cynosure.spark.session import JAVA_OPTIONS, REDACTED, join_java_options, make_base_config

NAME: Final = "cynosure-query"
MOST_RESULTS: Final = "spark.driver.maxResultSize"
"""What the rows of a job may be: a statement has those of two in the driver (`last_stage.py`)."""
_DAEMON: Final = "cynosure.query.spark.python_daemon"
_LOCAL: Final = re.compile(r"local(?:\[([^],]+)(?:,[^]]*)?\])?")
_FORBIDDEN: Final = re.compile(
    r"spark\.sql\.(catalog\.|extensions$|defaultCatalog$)|spark\.plugins$|spark\.remote$"
)
_PROTECTED: Final = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Else `${env:X}` in a statement tells what X is.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    # Rows of others are in these files.
    "spark.io.encryption.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.redaction.regex": REDACTED,
    # What failed tasks say holds values of rows.
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.python.daemon.module": _DAEMON,
    "spark.python.worker.reuse": "true",
    # What a Python error says comes from us, and from nobody's stack.
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}
"""Of the application, and so of all its sessions."""
_DEFAULTS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.speculation": "false",
    # How long a Python worker may go on that Spark has told to end; 2 s unless said.
    "spark.python.task.killTimeout": "200ms",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Some loops of Spark do not notice that they were cancelled. A cluster ends such an executor; a local
    # driver is ended by the engine.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "30s",
}
"""What `query.spark.config` may say otherwise."""
_COLLECTOR: Final = "-XX:+UseParallelGC"
"""Nearly all that a statement makes are rows that are gone at once: measured, a tenth less CPU than with the
collector that Java chooses."""
_NAMES_COLLECTOR: Final = re.compile(r"-XX:[+]Use\w+GC\b")
_RESULTS_SHARE: Final = 8
"""Spark has the rows that arrive three times over, beside those of the job before. Measured with 1 GiB: jobs
of 125 MiB come; those of 160 MiB end the driver, or only a thread of it, and then nothing ever ends them."""
_OPTIONS_OF_JAVA: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


def to_spark_settings(settings: QuerySparkSettings) -> SparkSettings:
    """As a driver takes them. `Misconfigured` for settings that would open what must be closed."""
    for name in settings.config:
        if _FORBIDDEN.match(name):
            raise Misconfigured(
                "A setting of Spark would make more readable than statements may read",
                field=f"query.spark.config.{name}",
                fix="Leave it out.",
            )
    attempts = 1 + settings.fragment_retries
    results = f"{max(share_for_results(settings.driver_memory) // 2**20, 1)}m"
    config = {**_DEFAULTS, MOST_RESULTS: results, ATTEMPTS: str(attempts), **settings.config}
    if not is_local(settings.master):
        config = {**make_settings(config[ATTEMPTS]), **config}
    return SparkSettings(
        master=_with_attempts(settings.master, attempts),
        driver_memory=settings.driver_memory,
        idle_timeout=settings.idle_timeout,
        jars=settings.jars,
        config=config,
    )


def share_for_results(heap_bytes: int) -> int:
    """Of a driver's heap, for the rows of one job."""
    return heap_bytes // _RESULTS_SHARE


def make_config(
    settings: SparkSettings, *, scratch: Path, java_options: tuple[str, ...] = (), jars: tuple[Path, ...] = ()
) -> dict[str, str]:
    """All of Spark's settings for a driver."""
    given = settings.config
    base = make_base_config(settings, scratch=scratch, daemon=_DAEMON)
    config = base | given | _PROTECTED
    config["spark.sql.warehouse.dir"] = base["spark.sql.warehouse.dir"]
    config["spark.local.dir"] = base["spark.local.dir"]
    if is_on_loopback(settings):
        config["spark.driver.bindAddress"] = base["spark.driver.bindAddress"]
    options = (*java_options, given.get(JAVA_OPTIONS, ""))
    config[JAVA_OPTIONS] = join_java_options(scratch, _choose_collector(config, options), *options)
    if jars:
        config["spark.jars"] = ",".join(
            [*map(str, jars), *filter(None, given.get("spark.jars", "").split(","))]
        )
    return config


def _choose_collector(config: Mapping[str, str], options: Iterable[str]) -> str:
    """Ours, unless one is named anywhere: Java does not begin with two."""
    said = [*options, config.get("spark.driver.defaultJavaOptions", "")]
    said += [os.environ.get(each, "") for each in _OPTIONS_OF_JAVA]
    home = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    with suppress(OSError, UnicodeDecodeError):
        said.append(Path(home, "spark-defaults.conf").read_text("utf-8"))
    return "" if _NAMES_COLLECTOR.search(" ".join(said)) else _COLLECTOR


def is_local(master: str) -> bool:
    """Whether executors are in the driver's own process."""
    return _LOCAL.fullmatch(master) is not None


def _with_attempts(master: str, attempts: int) -> str:
    """A local master tries a task once, unless it is told here."""
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{found[1] or 1},{attempts}]"
