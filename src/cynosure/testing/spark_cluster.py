"""A standalone cluster of Spark on this machine: a master, and workers with one executor each.

A maintainer must not break: executors are in processes of the workers and not in the driver's, so that a test
can kill one of them and nothing else.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from cynosure.common.delegated.settings import SparkSettings
from cynosure.spark.environment import make_environment
from cynosure.testing.harness.probes import tcp_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes

_DAEMON: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xshare:auto"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


class SparkCluster(NamedTuple):
    """What a test needs of a cluster."""

    master: str
    """Its address, as `query.spark.master` takes it."""
    workers: tuple[ManagedProcess, ...]

    def executors(self) -> list[psutil.Process]:
        """The processes of all executors now."""
        found = []
        for worker in self.workers:
            for each in psutil.Process(worker.pid).children(recursive=True):
                # Shells on the way to Java come and go.
                with suppress(psutil.Error):
                    if any(_EXECUTOR in word for word in each.cmdline()):
                        found.append(each)
        return found


async def start_cluster(
    processes: Processes, directory: Path, *, workers: int = 2, cores: int = 1, memory: str = "768m"
) -> SparkCluster:
    """Start it; it ends with `processes`. A driver asks for `spark.executor.memory` of 512m at most."""
    import pyspark  # noqa: PLC0415 - an extra

    home = Path(pyspark.__file__).parent
    port = processes.reserve_port()
    master = f"spark://127.0.0.1:{port}"
    env = {
        **make_environment(os.environ, SparkSettings(master=master)),
        "SPARK_HOME": str(home),
        "SPARK_LOG_DIR": str(directory / "logs"),
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
    started = []
    for number in range(workers):
        own = processes.reserve_port()
        started.append(
            await processes.start(
                f"worker-{number}",
                [
                    *(*run, "org.apache.spark.deploy.worker.Worker", master, *here, "--port", str(own)),
                    *("--cores", str(cores), "--memory", memory),
                ],
                ready=tcp_ready(own),
                env={
                    **env,
                    "SPARK_WORKER_DIR": str(directory / f"work-{number}"),
                    "SPARK_LOCAL_DIRS": str(directory / f"local-{number}"),
                },
            )
        )
    return SparkCluster(master, tuple(started))
