"""Iceberg for Spark, and its FileIO for S3: fetched once by Spark's own resolver, then used from the cache.

CYNOSURE_SPARK_JARS names a folder that holds the jars already, for machines without a network.

A maintainer must not break: a jar whose bytes are not the pinned ones is never loaded.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.engines.java import ToolFailed, find_cache, find_java, lock_cache, run_tool

COORDINATES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.apache.iceberg:iceberg-aws-bundle:1.12.0"
)
# File name → SHA-256.
PINNED = {
    "iceberg-spark-runtime-4.1_2.13-1.12.0.jar": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "iceberg-aws-bundle-1.12.0.jar": "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
}

# Starting a session is the only way to Spark's resolver that Spark documents.
_RESOLVE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder.config("spark.jars.packages", sys.argv[1]).config("spark.jars.ivy", sys.argv[2]).getOrCreate().stop()
"""


def find_jars() -> list[Path]:
    """The jars, checked."""
    find_java()
    if given := os.environ.get("CYNOSURE_SPARK_JARS"):
        folder = Path(given)
    else:
        folder = find_cache("spark")
        with lock_cache(folder):
            if not all((folder / name).exists() for name in PINNED):
                _fetch(folder)
    return [_check(folder / name, digest) for name, digest in PINNED.items()]


def _fetch(folder: Path) -> None:
    # Within the cache, so that a jar gets its name in one step, complete.
    with tempfile.TemporaryDirectory(dir=folder) as ivy:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        run_tool([sys.executable, "-c", _RESOLVE, COORDINATES, ivy], cwd=Path(ivy))
        for name in PINNED:
            found = list(Path(ivy, "jars").glob(f"*{name}"))
            if not found:
                raise ToolFailed(f"Spark resolved {COORDINATES} without a {name}")
            shutil.move(found[0], folder / name)


def _check(jar: Path, digest: str) -> Path:
    if not jar.exists():
        raise ToolFailed(f"{jar} is missing. Put it there, or unset CYNOSURE_SPARK_JARS to have it fetched")
    with jar.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != digest:
        raise ToolFailed(f"{jar} has SHA-256 {found}, not {digest}. Delete it; it is not what was tested")
    return jar
