"""One catalog, and beside it one gateway per engine: `local`, `isolated`, `native`.

For all tests that send statements over HTTP and break nothing: a Spark costs more to start than most of them
take. Each folder of tests has users, namespaces and, if it likes, a catalog of its own.
"""

from dataclasses import dataclass, field

from cynosure.testing.query_server import QueryScene
from tests.engines.java import SHORT_LIVED

ENGINES = ("local", "isolated", "native")
SPARK = {
    "QUERY__LOCAL_EXECUTION": "off",
    "QUERY__SPARK__ENABLED": "on",
    "QUERY__SPARK__MASTER": "local[2]",
    "QUERY__SPARK__DRIVER_MEMORY": "1 GiB",
}
SETTINGS = {
    "local": {"QUERY__SPARK__ENABLED": "off"},
    "isolated": {**SPARK, "QUERY__SPARK__SCAN": "isolated"},
    "native": {**SPARK, "QUERY__SPARK__SCAN": "native"},
}
CONFIG = f"""[query.spark.config]
"spark.driver.extraJavaOptions" = "{" ".join(SHORT_LIVED)}"
"spark.sql.shuffle.partitions" = "2"
"spark.default.parallelism" = "2"
"""


@dataclass
class Served:
    """Who answers. A gateway starts when it is first asked for."""

    scene: QueryScene
    """With the local engine only, and a catalog `lake` on local files."""
    _started: dict[str, QueryScene] = field(default_factory=dict)

    async def at(self, engine: str) -> QueryScene:
        """The same, through the gateway of an engine."""
        if engine == "local":
            return self.scene
        if engine not in self._started:
            config = self.scene.directory / f"{engine}.toml"
            config.write_text(CONFIG, encoding="utf-8")
            settings = {**SETTINGS[engine], "CONFIG": str(config)}
            self._started[engine] = await self.scene.start_another(engine, settings)
        return self._started[engine]
