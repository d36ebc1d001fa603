import random
from collections.abc import AsyncIterator

import httpx
import pytest

from cynosure.testing.scripted_statements import ScriptedStatements, make_query_service


@pytest.fixture
def statements() -> ScriptedStatements:
    return ScriptedStatements()


@pytest.fixture
async def http(statements: ScriptedStatements) -> AsyncIterator[httpx.AsyncClient]:
    random.seed(1)
    transport = httpx.ASGITransport(make_query_service(statements).app)
    async with httpx.AsyncClient(
        transport=transport,
        base_url="http://test",
        headers={"Authorization": "Bearer token-of-alice"},
    ) as client:
        yield client
