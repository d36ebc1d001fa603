"""The engines of a gateway, as its settings and what is installed allow.

A maintainer must not break: with `query.local_execution = "off"` nothing that can read a table's file is
imported into this process; the imports are inside the functions for that, and a test looks.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured
from cynosure.query.engine import Cluster, Engine
from cynosure.query.settings import QuerySettings
from cynosure.server.gateway_settings import SPARK_FIX


@dataclass(frozen=True, slots=True)
class Engines:
    """What can run statements here."""

    local: Engine | None
    spark: Engine | None
    cluster: Cluster | None
    memory_ratio: Callable[[], float]
    """How much of the local engine's memory is taken: 0 to 1."""

    @property
    def names(self) -> list[str]:
        """For people."""
        return [each.name for each in (self.local, self.spark) if each is not None]


@asynccontextmanager
async def open_engines(settings: QuerySettings, data_dir: Path, clock: Clock) -> AsyncIterator[Engines]:
    """Open them; what runs when they are closed is ended."""
    spill_dir = settings.spill_dir or data_dir / "gateway" / "spill"
    async with AsyncExitStack() as stack:
        local, memory_ratio = None, no_memory
        if settings.local_execution == "on":
            from cynosure.query.local.engine import LocalEngine  # noqa: PLC0415 - see above

            local = LocalEngine(settings, spill_dir=spill_dir, clock=clock)
            memory_ratio = local.memory_ratio
            stack.push_async_callback(local.close)
        spark = None
        if settings.spark.enabled != "off":
            from cynosure.query.broker.broker import Broker  # noqa: PLC0415 - only where Spark may be
            from cynosure.query.spark.engine import SparkEngine, is_spark_here  # noqa: PLC0415

            if is_spark_here():
                broker = Broker(settings.broker, clock)
                stack.push_async_callback(broker.close)
                await broker.start()
                spark = SparkEngine(settings, broker, clock)
                stack.push_async_callback(spark.close)
                await spark.start()
            elif settings.spark.enabled == "on":
                raise Misconfigured(
                    "Spark is to run statements, and PySpark or Java is not here",
                    key="query.spark.enabled",
                    fix=SPARK_FIX,
                )
        if local is None and spark is None:
            raise Misconfigured("No engine could run a statement: Spark is not here", fix=SPARK_FIX)
        yield Engines(local, spark, spark, memory_ratio)


def no_memory() -> float:
    """Nothing is taken where nothing runs."""
    return 0.0
