"""The store of a serving process: opened, watched, maintained in the background.

A maintainer must not break: background work stops before the store closes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

from cynosure.api.health import Readiness
from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured, NotFound
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.maintenance import maintenance_tasks
from cynosure.persistence.references import REALMS
from cynosure.persistence.tasks import TaskLoop
from cynosure.server.settings import Settings

_PUBLISH_S = 5.0


@asynccontextmanager
async def open_serving_store(
    settings: Settings, clock: Clock, readiness: Readiness
) -> AsyncIterator[Persistence]:
    """The store with its readiness check, coordinated tasks and metrics. Initialises an empty one."""
    url = settings.store_url.reveal()
    opened = open_persistence(
        url, settings.persistence, initialise=True, clock=clock, key_lifetime=settings.idempotency.kept
    )
    async with opened as persistence:
        if settings.server.workers > 1 and not persistence.backend.limits.is_shared:
            raise Misconfigured(
                "This kind of store belongs to one process",
                fix="Use one worker, or a store that processes can share (sqlite:, postgresql:).",
                workers=settings.server.workers,
            )

        async def check_store() -> None:
            await persistence.heads.load(REALMS)

        readiness.register("store", check_store)
        async with TaskLoop(clock, persistence.rng) as loop:
            for task in maintenance_tasks(persistence):
                loop.register(persistence.tasks, task)
            publishing = asyncio.create_task(_publish(persistence))
            try:
                yield persistence
            finally:
                publishing.cancel()
                await asyncio.wait([publishing])


def refuse_missing_file(url: str) -> None:
    """Looking at an embedded store that does not exist must not create one."""
    scheme, _, rest = url.partition(":")
    path = Path(unquote(rest.partition("?")[0]))
    if scheme == "sqlite" and not path.exists():
        raise NotFound(
            "There is no store here",
            fix="Create one with 'cynosure store init', or point --data or --store elsewhere.",
            path=str(path),
        )


async def _publish(persistence: Persistence) -> None:
    while True:
        persistence.publish()
        await persistence.clock.sleep(_PUBLISH_S)
