"""Spark's settings, and the one session of a driver.

Local masters, standalone clusters (`spark://`), Spark Connect (`sc://`); other masters by Spark's own
settings (`service.spark.config`).

A maintainer must not break: PySpark hands these settings to Java on its command line, which everybody on the
machine can read. So no credential is among them: those of catalogs are set in the session of a job.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.common.errors import Misconfigured
from cynosure.delegation.spark.environment import is_on_loopback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
REDACTED: Final = "(?i)secret|password|passwd|token|credential|access[.-]?key|signature|sas[.-]"
_AS_WRITTEN: Final = {
    # Else `${env:X}` in a name or an instruction tells what X is, and a table `a${x}` is the table `a`.
    "spark.sql.variable.substitute": "false",
    # As `cynosure.delegation.spark.table` writes texts.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""Settings that statements rely on, whatever an operator says: what is in them means what is written."""
_JAVA: Final = "spark.driver.extraJavaOptions"
_JARS: Final = "spark.jars"
_NAME: Final = "cynosure-delegation"


def require_pyspark() -> None:
    """`Misconfigured` when Spark is not installed."""
    try:
        import pyspark  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise Misconfigured(
            "Spark is not installed here",
            fix="Install the extra `spark` of cynosure, and Java 17 or newer.",
        ) from error


def make_config(
    settings: SparkSettings, *, jars: list[Path], scratch: Path, java_options: tuple[str, ...] = ()
) -> dict[str, str]:
    """Spark's settings for a master. What `service.spark.config` names wins."""
    given = settings.config
    config = {
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.driver.memory": f"{max(settings.driver_memory // 2**20, 1)}m",
        "spark.redaction.regex": REDACTED,
        # What is spilled and shuffled are paths and rows of tables.
        "spark.io.encryption.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.python.daemon.module": "cynosure.delegation.spark.python_daemon",
        # Jobs of several tasks share the session.
        "spark.scheduler.mode": "FAIR",
    }
    if is_on_loopback(settings):
        config |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    config |= given
    config[_JAVA] = " ".join([f"-Djava.io.tmpdir={scratch}", *java_options, given.get(_JAVA, "")]).strip()
    config[_JARS] = ",".join([*map(str, jars), *filter(None, given.get(_JARS, "").split(","))])
    return config


def open_session(settings: SparkSettings, config: dict[str, str]) -> "SparkSession":
    """The session of a master, or of a Spark Connect server."""
    require_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    if settings.remote is not None:
        return _connect(settings.remote)
    builder = SparkSession.builder.master(settings.master).appName(_NAME)
    for name, value in config.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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
