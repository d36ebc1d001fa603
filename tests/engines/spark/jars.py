"""Iceberg for Spark and its FileIO for S3, as the delegation service uses them (`spark/jars.py`).

CYNOSURE_SPARK_JARS names a folder that holds the jars already, for machines without a network.
"""

import os
from pathlib import Path

from cynosure.common.errors import CynosureError
from cynosure.spark import jars
from tests.engines.java import ToolFailed, find_java


def find_jars() -> list[Path]:
    """The jars, checked."""
    find_java()
    given = os.environ.get("CYNOSURE_SPARK_JARS")
    try:
        return jars.find_jars(Path(given) if given else None)
    except CynosureError as error:
        raise ToolFailed(str(error)) from error
