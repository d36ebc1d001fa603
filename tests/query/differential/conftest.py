"""One lake for all tests here."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.testing.query_server import QueryScene
from cynosure.testing.s3_servers import parse_s3_server
from tests.delegation.spark.world import Loop
from tests.query.differential.lake import copy_lake, make_data, make_steward, restrict_lake, write_lake
from tests.query.differential.world import Gateways
from tests.query.served import Served

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts slowly."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def scene(loop: Loop, served: Served, s3_url: str) -> QueryScene:
    """A catalog whose tables are on an object store, with credentials for each table."""
    store = parse_s3_server("seaweedfs", s3_url)
    lake = loop.run(served.scene.catalog.create_catalog_on(store, "differential"))
    return replace(served.scene, lake=lake)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """TPC-H, all of it."""
    return make_data(tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="session")
def rows(loop: Loop, scene: QueryScene, data: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """What is in `tpch`, after deletes and changes of schemas."""
    loop.run(scene.create_namespace("tpch"))
    return write_lake(scene, data)


@pytest.fixture(scope="session")
def gateways(loop: Loop, served: Served, scene: QueryScene, rows: dict[str, pa.Table]) -> Iterator[Gateways]:
    """`ann` is restricted in `tpch`; `uma` sees all of `copy`, what `ann` may see; `sue` sees all."""
    loop.run(restrict_lake(scene))
    seen = loop.run(copy_lake(scene, rows))
    users = {name: loop.run(scene.create_user(name)) for name in ("ann", "uma", "sue")}
    loop.run(make_steward(scene, "sue"))
    opened = Gateways(loop, served, scene, users, seen)
    yield opened
    opened.close()
