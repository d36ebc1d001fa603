"""Spark's answer to a statement over Arrow tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.engines.java import SHORT_LIVED
from tests.query.local.world import Tables

CHILD = Path(__file__).parent / "spark_child.py"


class SparkFailed(Exception):
    """Spark refused a statement, or failed. `condition`: its name of that."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition


class SparkSide:
    """One Spark; begins to start at once and answers when it is there."""

    def __init__(self, folder: Path, tables: Tables) -> None:
        self._folder = folder
        self._count = 0
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet")
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        with (folder / "spark.log").open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, str(CHILD), str(folder), " ".join(SHORT_LIVED)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )

    def run(self, sql: str) -> pa.Table:
        """All rows."""
        assert self._child.stdin
        assert self._child.stdout
        self._count += 1
        out = self._folder / f"{self._count}.arrow"
        self._child.stdin.write(json.dumps({"sql": sql, "out": str(out)}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, (self._folder / "spark.log").read_text()[-2000:]
        said = json.loads(line)
        if said["condition"]:
            raise SparkFailed(said["condition"], said["text"])
        with pa.OSFile(str(out), "rb") as source:
            return pa.ipc.open_file(source).read_all()

    def close(self) -> None:
        """End it."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()
