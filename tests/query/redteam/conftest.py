"""One vault for all attacks, asked through a gateway for each engine."""

import asyncio
from pathlib import Path

import pytest

from tests.query.redteam.vault import Vault, fill
from tests.query.served import Served

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts slowly."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


# Not asynchronous: all tests after it would share its task, and what one of them reads ahead.
@pytest.fixture(scope="session")
def vault(served: Served) -> Vault:
    """With the local engine only: the fastest."""
    return asyncio.run(fill(served.scene))


@pytest.fixture(scope="session", params=["isolated", "native"])
def spark(served: Served, vault: Vault, request: pytest.FixtureRequest) -> Vault:
    """The vault through a gateway that has Spark only."""
    return vault.at(asyncio.run(served.at(request.param)))
