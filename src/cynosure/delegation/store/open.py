"""Open the store of tasks that a URL names.

A maintainer must not break: the URL may hold a password, so no message shows it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random, SystemRandom
from typing import Final

from msgspec.structs import replace

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import AlreadyExists
from cynosure.delegation.store.objects import ObjectTaskStore
from cynosure.delegation.store.port import TaskStore
from cynosure.persistence.backends.postgres.address import SCHEMA as CATALOG_SCHEMA
from cynosure.persistence.backends.postgres.address import Address, read_address
from cynosure.persistence.backends.postgres.opening import needing_driver
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.maintenance import maintenance_tasks
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import check_realm_name, create_realm, list_realms
from cynosure.persistence.spi import RealmId
from cynosure.persistence.tasks import TaskLoop

SCHEMA: Final = "cynosure_delegation"
"""Where the tables are in PostgreSQL, unless the URL names another schema: never among those of a catalog."""
_POSTGRES: Final = "postgresql:"


@asynccontextmanager
async def open_task_store(
    url: str, realm: str, *, clock: Clock | None = None, rng: Random | None = None
) -> AsyncIterator[TaskStore]:
    """The tasks of a realm; an empty database is made ready.

    `postgresql://…` is tables of their own; everything else is a store of ours (`sqlite:PATH`, `memory:` …).
    """
    check_realm_name(realm)
    clock, rng = clock or SystemClock(), rng or SystemRandom()
    if url.startswith(_POSTGRES):
        async with _open_tables(url, realm, rng) as store:
            yield store
        return
    async with open_persistence(url, initialise=True, clock=clock, rng=rng) as persistence:
        await _ensure_realm(persistence, RealmId(realm))
        async with TaskLoop(clock, rng) as loop:
            for task in maintenance_tasks(persistence):
                loop.register(persistence.tasks, task)
            yield ObjectTaskStore(persistence, RealmId(realm), rng)


@asynccontextmanager
async def _open_tables(url: str, realm: str, rng: Random) -> AsyncIterator[TaskStore]:
    with needing_driver():
        # Here, because it must be possible to work where the driver is not installed.
        from cynosure.delegation.store.postgres import PostgresTaskStore  # noqa: PLC0415
    store = PostgresTaskStore(read_tables_address(url), realm, rng)
    try:
        await store.setup()
        yield store
    finally:
        await store.close()


def read_tables_address(url: str) -> Address:
    """Where the tables are; `Misconfigured` when the URL cannot be read."""
    address = read_address(url, {})
    # The one it has when the URL names none.
    return replace(address, schema=SCHEMA) if address.schema == CATALOG_SCHEMA else address


async def _ensure_realm(persistence: Persistence, realm: RealmId) -> None:
    realms = persistence.committer(REALMS)
    if realm in await list_realms(realms):
        return
    with suppress(AlreadyExists):  # Another instance was faster.
        await create_realm(
            realms,
            realm,
            backend=persistence.backend,
            ids=persistence.ids,
            clock=persistence.clock,
            principal="system",
        )
