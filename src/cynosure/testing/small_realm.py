"""Principals in one process, or several, for tests: a store in memory, a keyring, the real authorizer."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import Caller, Identity
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.common.clock import Clock
from cynosure.common.errors import Unavailable
from cynosure.common.keyring import Keyring
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId, Reference, Row
from cynosure.testing.small_store import SwapRule

KEYRING = Keyring({"k1": b"k" * 32}, "k1")
"""One for all processes of a store, as in production."""


class SharedBackend(MemoryBackend):
    """A memory backend that several processes open, and whose writes to references a test can stop."""

    def __init__(self) -> None:
        super().__init__()
        self.writes_left: int | None = None
        """How many more are applied; then the process that writes is dead. `None`: it lives."""
        self.rule: SwapRule | None = None

    async def close(self) -> None:
        """The others still use it."""

    async def insert_ref(self, ref: Reference) -> bool:
        self._write()
        return await super().insert_ref(ref)

    async def delete_ref(self, expected: Reference) -> bool:
        self._write()
        return await super().delete_ref(expected)

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self._write()

        async def apply() -> bool:
            return await super(SharedBackend, self).swap_ref(expected, updated, rows)

        return await (self.rule(expected, updated, apply) if self.rule else apply())

    def _write(self) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Unavailable("This process is dead")
            self.writes_left -= 1


@asynccontextmanager
async def open_identities_on(
    backend: MemoryBackend, *, settings: AuthSettings | None = None, clock: Clock | None = None
) -> AsyncIterator[Identities]:
    """The principals of a store, as one process uses them."""
    async with open_persistence_on(backend, initialise=True, clock=clock) as persistence:
        yield identities_of(persistence, settings)


def identities_of(persistence: Persistence, settings: AuthSettings | None = None) -> Identities:
    """The principals of a store that is open already."""
    standings = Standings(persistence)
    settings = settings or AuthSettings()
    authorizer = InternalAuthorizer(persistence, standings, settings)
    return Identities(persistence, standings, authorizer, settings, SecretHasher(lambda: KEYRING))


def caller_for(principal: PrincipalEntity, realm: RealmId = DEFAULT_REALM) -> Caller:
    """Who asks with a token that was obtained with the principal's newest secret."""
    credential = principal.secrets[0].generation if principal.secrets else 0
    return Caller(principal.name, realm, identity=Identity(principal.id, credential))
