"""One catalog, one gateway and one cluster for all tests here; what a test breaks it mends.

With CYNOSURE_SOAK_GOVERNED all of it on both leaves.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.testing.s3_servers import find_s3_servers
from tests.query.faults.scene import FaultScene, open_scene

HERE = Path(__file__).parent
LEAVES = ("isolated", "native") if "CYNOSURE_SOAK_GOVERNED" in os.environ else ("isolated",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Five Javas start slowly. A soak may not hang here either: this is where it would."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


# Not for the session: all tests after it would share its task, and what one of them reads ahead.
@pytest.fixture(scope="module", params=LEAVES)
async def shared_scene(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str, request: pytest.FixtureRequest
) -> AsyncIterator[FaultScene]:
    minio, spied = find_s3_servers()["minio"], tmp_path_factory.mktemp("spied") / "drawn"
    async with open_scene(tmp_path_factory.mktemp("faults"), minio, request.param, spied) as scene:
        yield scene


@pytest.fixture
async def scene(shared_scene: FaultScene, anyio_backend: str) -> AsyncIterator[FaultScene]:
    """Whole, and with both workers; afterwards nothing of the test goes on."""
    await shared_scene.wait_for_workers()
    yield shared_scene
    shared_scene.proxy.clear()
    shared_scene.tokens.is_refusing = False
    await shared_scene.proxy.start()
    await shared_scene.check_quiet()


@pytest.fixture
def isolated(scene: FaultScene) -> FaultScene:
    """For what only scans of ours have: streams, credentials that are renewed, attempts that are counted."""
    if scene.leaf != "isolated":
        pytest.skip("of the isolated leaf only")
    return scene
