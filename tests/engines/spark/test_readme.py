"""The programs of README.md work as they stand there, but for the port."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import Processes
from tests.engines.readme import find_snippet
from tests.engines.spark.jars import find_jars

README = Path(__file__).resolve().parents[3] / "README.md"
CYNOSURE = str(Path(sys.executable).parent / "cynosure")


def run(snippet: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", snippet],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_programs_of_the_readme_work_by_copy_and_paste(tmp_path: Path):
    with Processes(tmp_path) as processes:
        port = processes.reserve_port()
        url = f"http://127.0.0.1:{port}"
        argv = [CYNOSURE, "up", "--data", str(tmp_path / "data"), "--port", str(port)]
        asyncio.run(processes.start("up", argv, ready=http_ready(f"{url}/health/ready"), timeout_s=60))

        assert "star chart" in run(find_snippet(README, "pyiceberg.catalog", url))
        shown = run(find_snippet(README, "pyspark.sql", url, jars=find_jars()))

    assert "star chart" in shown
    assert "astrolabe" in shown
