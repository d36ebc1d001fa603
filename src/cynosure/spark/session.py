"""What the sessions of all drivers have in common.

A maintainer must not break: PySpark hands settings to Java on its command line, which everybody on the
machine can read. So no credential is among them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.common.errors import Misconfigured
from cynosure.spark.environment import is_on_loopback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTED: Final = "(?i)secret|password|passwd|token|credential|access[.-]?key|signature|sas[.-]"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_CODE_CACHE: Final = "-XX:ReservedCodeCacheSize=512m"
"""A driver lives long, and makes code for each statement: one whose room for it is full fails, and compiles
no more. It is reserved, not used."""


def require_pyspark() -> None:
    """`Misconfigured` when Spark is not installed."""
    try:
        import pyspark  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise Misconfigured(
            "Spark is not installed here",
            fix="Install the extra `spark` of cynosure, and Java 17 or newer.",
        ) from error


def make_base_config(settings: SparkSettings, *, scratch: Path, daemon: str) -> dict[str, str]:
    """Settings of every driver; `daemon` is the module that executors fork Python's workers from."""
    config = {
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
        "spark.python.daemon.module": daemon,
        # Jobs of several tasks share the session.
        "spark.scheduler.mode": "FAIR",
    }
    if is_on_loopback(settings):
        config |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return config


def join_java_options(scratch: Path, *options: str) -> str:
    """Options of the driver's Java: its temporary files are in the scratch folder."""
    return " ".join([f"-Djava.io.tmpdir={scratch}", _CODE_CACHE, *filter(None, options)])


def open_classic(master: str, name: str, config: dict[str, str]) -> "SparkSession":
    """The session of a master."""
    require_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    builder = SparkSession.builder.master(master).appName(name)
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
