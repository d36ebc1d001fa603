"""What several folders of tests of statements share."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.testing.harness.processes import Processes
from cynosure.testing.query_server import start_query_scene
from tests.query.served import SETTINGS, Served

HERE = Path(__file__).parent
MAY_NOT_HANG = (HERE / "faults", HERE / "worker", HERE / "broker")
"""Where a hang is what a test would find; these keep their time-outs in a soak."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing else ends by a clock in `./dev soak governed`: whole matrices take what they take."""
    if "CYNOSURE_SOAK_GOVERNED" in os.environ:
        for item in items:
            if HERE in item.path.parents and not set(MAY_NOT_HANG) & set(item.path.parents):
                item.add_marker(pytest.mark.timeout(0), append=False)


# Not asynchronous: all tests after it would share its task, and what one of them reads ahead.
@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One catalog, and a gateway for each engine."""
    directory = tmp_path_factory.mktemp("served")
    with Processes(directory) as processes:
        yield Served(asyncio.run(start_query_scene(processes, directory, settings=SETTINGS["local"])))
