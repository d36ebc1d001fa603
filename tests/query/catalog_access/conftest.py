"""One catalog for all tests of access to it: plans come in small pages, and later than they are asked for."""

from collections.abc import AsyncIterator

import pytest

from tests.query.governed_world import READ, World, open_world

PLANS = {"CYNOSURE_CATALOG__PLANNING__PAGE_FILES": "3", "CYNOSURE_CATALOG__PLANNING__WAIT": "0s"}


# Not for the session: all tests after it would share its task, and what one of them reads ahead.
@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("world"), PLANS) as opened:
        for name in ("ann", "bob"):
            await opened.add_user(name, *READ)
        await opened.add_user("eve")
        yield opened
