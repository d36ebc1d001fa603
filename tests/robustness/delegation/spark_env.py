"""Settings of a delegation service whose Spark starts soon and stays small."""

import os

from cynosure.testing.delegation_server import PREFIX
from tests.engines.java import SHORT_LIVED


def spark_env(threshold: int) -> dict[str, str]:
    """Variables of a service that purges tables with more files than this on Spark."""
    jars = os.environ.get("CYNOSURE_SPARK_JARS")
    return {
        f"{PREFIX}SERVICE__SPARK_THRESHOLD_FILES": str(threshold),
        f"{PREFIX}SERVICE__SPARK__MASTER": "local[2]",
        f"{PREFIX}SERVICE__SPARK__DRIVER_MEMORY": "768MiB",
        "JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED),
        **({f"{PREFIX}SERVICE__SPARK__JARS": jars} if jars else {}),
    }
