"""The executor that the settings ask for.

A maintainer must not break: what was opened is closed, and while it closes nobody is kept waiting for a task.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Final

from cynosure.catalog.directory import Directory
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.delegation.executors.local import LocalTaskExecutor

_DRAIN: Final = timedelta(seconds=2)
"""A catalog that stops must not wait for its purges: another server, or the same one again, goes on."""

_log = Log(__name__)

MakeDelegated = Callable[[], AbstractAsyncContextManager[TaskExecutor]]


@asynccontextmanager
async def open_executor(
    settings: DelegationSettings, directory: Directory, *, make_delegated: MakeDelegated, rng: Random
) -> AsyncIterator[TaskExecutor]:
    """Whoever does long work for these catalogs: a delegation service, or this process itself."""
    if settings.is_delegated:
        async with make_delegated() as delegated:
            yield delegated
        return
    local = LocalTaskExecutor(settings, directory, rng)
    # Not waited for: a server with many realms must not start later for it.
    reviving = asyncio.create_task(_revive(local))
    try:
        yield local
    finally:
        reviving.cancel()
        await asyncio.wait([reviving])
        await local.close(min(settings.service.drain, _DRAIN).total_seconds())


async def _revive(local: LocalTaskExecutor) -> None:
    try:
        await local.revive()
    except CynosureError as error:
        # The outbox asks for every tombstone, and so comes to all of them a little later.
        _log.event("executor.not_revived", level=WARNING, error=error)
