"""Spark's settings, and the one session of a driver.

Local masters, standalone clusters (`spark://`), Spark Connect (`sc://`); other masters by Spark's own
settings (`service.spark.config`).

A maintainer must not break: PySpark hands these settings to Java on its command line, which everybody on the
machine can read. So no credential is among them: those of catalogs are set in the session of a job.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.spark.session import (
    JAVA_OPTIONS,
    join_java_options,
    make_base_config,
    open_classic,
    require_pyspark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_AS_WRITTEN: Final = {
    # Else `${env:X}` in a name or an instruction tells what X is, and a table `a${x}` is the table `a`.
    "spark.sql.variable.substitute": "false",
    # As `cynosure.delegation.spark.table` writes texts.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""Settings that statements rely on, whatever an operator says: what is in them means what is written."""
_JARS: Final = "spark.jars"
_NAME: Final = "cynosure-delegation"
_DAEMON: Final = "cynosure.delegation.spark.python_daemon"


def make_config(
    settings: SparkSettings, *, jars: list[Path], scratch: Path, java_options: tuple[str, ...] = ()
) -> dict[str, str]:
    """Spark's settings for a master. What `service.spark.config` names wins."""
    given = settings.config
    config = make_base_config(settings, scratch=scratch, daemon=_DAEMON)
    config["spark.sql.extensions"] = EXTENSIONS
    config |= given
    config[JAVA_OPTIONS] = join_java_options(scratch, *java_options, given.get(JAVA_OPTIONS, ""))
    config[_JARS] = ",".join([*map(str, jars), *filter(None, given.get(_JARS, "").split(","))])
    return config


def open_session(settings: SparkSettings, config: dict[str, str]) -> "SparkSession":
    """The session of a master, or of a Spark Connect server."""
    require_pyspark()
    if settings.remote is not None:
        return _connect(settings.remote)
    return open_classic(settings.master, _NAME, config)


def open_job_session(spark: "SparkSession", settings: SparkSettings) -> "SparkSession":
    """A session of one job's own: what it sets and names is nobody else's."""
    if settings.remote is None:
        own = spark.newSession()
    else:
        own = _connect(settings.remote)
        for name, value in settings.config.items():
            if name.startswith("spark.sql."):
                own.conf.set(name, value)
    for name, value in _AS_WRITTEN.items():
        own.conf.set(name, value)
    return own


def _connect(remote: str) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    session: SparkSession = SparkSession.builder.remote(remote).appName(_NAME).create()
    return session
