from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from cynosure.auth.caller import operator_caller
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.settings import TokenSettings
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.authenticator_kit import AuthenticatorKit
from tests.auth.tokens.world import TokenWorld, server_on

OPERATOR = operator_caller()
LIFETIME = TokenSettings().lifetime


class Subject:
    """Our own tokens, on two servers."""

    def __init__(self, world: TokenWorld, other: TokenWorld):
        self._world = world
        self.authenticator = world.tokens.authenticator
        self.elsewhere = other.tokens.authenticator
        self.realm = DEFAULT_REALM

    async def setup(self) -> None:
        self.other_realm = await self._world.add_realm("other")
        for realm in (self.realm, self.other_realm):
            await self._world.add_role("analyst", realm=realm)
            credentials = await self._world.add_principal("ann", "analyst", realm=realm)
            if realm == self.realm:
                self._credentials = credentials

    async def token(self) -> str:
        return await self._world.login(self._credentials)

    async def revoke_role(self) -> None:
        await revoke_principal_role(self._world.identities, OPERATOR, "ann", "analyst")

    async def delete_principal(self) -> None:
        await delete_principal(self._world.identities, OPERATOR, "ann")

    async def recreate_principal(self) -> None:
        await self._world.add_principal("ann")
        await assign_principal_role(self._world.identities, OPERATOR, "ann", "analyst")

    async def expire(self) -> None:
        self._world.clock.step_wall((LIFETIME + timedelta(minutes=1)).total_seconds())


class TestOurTokens(AuthenticatorKit):
    @pytest.fixture
    async def subject(self, world: TokenWorld) -> AsyncIterator[Subject]:
        async with server_on(world.persistence, world.clock, world.identities.settings) as other:
            subject = Subject(world, other)
            await subject.setup()
            yield subject
