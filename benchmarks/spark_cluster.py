"""A standalone cluster of Spark on this machine: a master, and one worker with two cores.

A maintainer must not break: executors are in processes of the worker and not in the driver, so that what the
driver holds is the driver's.
"""

import os
import sys
from pathlib import Path
from typing import Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.spark.environment import make_environment
from cynosure.testing.harness.probes import tcp_ready
from cynosure.testing.harness.processes import Processes

_CORES: Final = 2
_DAEMON: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


async def start_cluster(processes: Processes, directory: Path) -> tuple[SparkSettings, int]:
    """Settings with which a driver runs there, and the worker's process, whose children executors are."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, worker_port = processes.reserve_port(), processes.reserve_port()
    master = f"spark://127.0.0.1:{port}"
    settings = SparkSettings(master=master, config={"spark.executor.memory": "512m"})
    env = {
        **make_environment(os.environ, settings),
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(directory / "work"),
        "SPARK_LOG_DIR": str(directory / "logs"),
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _DAEMON,
        "PYSPARK_PYTHON": sys.executable,
    }
    run = (str(home / "bin" / "spark-class"),)
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    await processes.start(
        "master",
        [*run, "org.apache.spark.deploy.master.Master", *here, "--port", str(port)],
        ready=tcp_ready(port),
        env=env,
    )
    worker = await processes.start(
        "worker",
        [
            *(*run, "org.apache.spark.deploy.worker.Worker", master, *here, "--port", str(worker_port)),
            *("--cores", str(_CORES), "--memory", "768m"),
        ],
        ready=tcp_ready(worker_port),
        env=env,
    )
    return settings, worker.pid
