"""One local engine and one plain Spark for all tests here."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.query.local.engine import LocalEngine
from tests.query.local.edge_values import make_tables
from tests.query.local.spark_side import SparkSide
from tests.query.local.tpch import make_tpch
from tests.query.local.world import make_engine


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    return {**make_tables(), **make_tpch(tmp_path_factory.mktemp("tpch"))}


@pytest.fixture(scope="session")
def spark_side(tables: dict[str, pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSide]:
    side = SparkSide(tmp_path_factory.mktemp("spark"), tables)
    yield side
    side.close()


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    return make_engine(tmp_path / "spill")
