"""Iceberg for Spark, and its FileIO for S3: fetched once by Spark's own resolver, then used from the cache.

A setting (`spark.jars`) names a folder that holds the jars already, for machines without a network.

A maintainer must not break: a jar whose bytes are not the pinned ones is never loaded.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cynosure.common.errors import Misconfigured, Unavailable

COORDINATES: Final = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.apache.iceberg:iceberg-aws-bundle:1.12.0"
)
PINNED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "iceberg-spark-runtime-4.1_2.13-1.12.0.jar": (
            "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
        ),
        "iceberg-aws-bundle-1.12.0.jar": "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
    }
)
"""File name → SHA-256."""
_FETCH_S: Final = 600.0
# Starting a session is the only way to Spark's resolver that Spark documents.
_RESOLVE: Final = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder.config("spark.jars.packages", sys.argv[1]).config("spark.jars.ivy", sys.argv[2]).getOrCreate().stop()
"""


def find_jars(given: Path | None = None) -> list[Path]:
    """The jars, checked. `given` holds them already; without it they are fetched if they must be."""
    folder = given
    if folder is None:
        folder = find_cache()
        with _lock(folder):
            if not all((folder / name).exists() for name in PINNED):
                _fetch(folder)
    return [_check(folder / name, digest) for name, digest in PINNED.items()]


def find_cache() -> Path:
    """A folder for what is fetched, shared by everything that one user runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("CYNOSURE_CACHE_DIR") or Path(home, "cynosure")) / "spark"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process at a time fills the folder; whoever waited finds it filled."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path) -> None:
    # Within the cache, so that a jar gets its name in one step, complete.
    with tempfile.TemporaryDirectory(dir=folder) as ivy:
        try:
            done = subprocess.run(  # noqa: S603 - our own Python, our own words
                [sys.executable, "-c", _RESOLVE, COORDINATES, ivy],
                cwd=ivy,
                env={"SPARK_LOCAL_IP": "127.0.0.1", **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=_FETCH_S,
            )
            output, is_done = done.stdout, done.returncode == 0
        except subprocess.TimeoutExpired as error:
            output, is_done = str(error.stdout or ""), False
        found = {name: next(iter(Path(ivy, "jars").glob(f"*{name}")), None) for name in PINNED}
        if not is_done or None in found.values():
            raise Unavailable(
                "Spark could not fetch Iceberg's jars",
                fix="Check Java and the network, or put the jars into a folder and name it "
                "(spark.jars in the settings of delegation.service or query).",
                coordinates=COORDINATES,
                output=output[-2000:],
            )
        for name, path in found.items():
            if path is not None:
                shutil.move(path, folder / name)


def _check(jar: Path, digest: str) -> Path:
    if not jar.exists():
        raise Misconfigured(
            "A jar that Spark needs is missing",
            fix="Put it there, or leave spark.jars out of the settings to have it fetched.",
            jar=str(jar),
        )
    with jar.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != digest:
        raise Misconfigured(
            "A jar for Spark is not the one that was tested",
            fix="Delete it; put the one with the right SHA-256 there, or let it be fetched.",
            jar=str(jar),
            found=found,
            expected=digest,
        )
    return jar
