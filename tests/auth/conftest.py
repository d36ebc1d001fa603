from collections.abc import AsyncIterator

import pytest

from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.caller import Caller
from cynosure.auth.entities import ROOT
from cynosure.auth.identities import Identities
from cynosure.auth.principals import find_principal
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_realm import SharedBackend, caller_for, open_identities_on


@pytest.fixture
async def shared_backend() -> SharedBackend:
    return SharedBackend()


@pytest.fixture
async def identities(shared_backend: SharedBackend) -> AsyncIterator[Identities]:
    """The principals of a store whose default realm has its root."""
    async with open_identities_on(shared_backend) as opened:
        await bootstrap_realm(opened, DEFAULT_REALM)
        yield opened


@pytest.fixture
async def root(identities: Identities) -> Caller:
    found = await find_principal(identities.persistence, DEFAULT_REALM, ROOT)
    assert found is not None
    return caller_for(found)
