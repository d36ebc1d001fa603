"""The audit of one process, put together.

    async with open_audit(persistence, authorizer, settings.auth.audit) as audit:
        TokenGate(authenticator, audit.denials)
        event_routes(audit.events)

Must not break: the order of closing. Refusals that wait are written, and what is being told is finished,
before the store closes.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.collect import EventCollector
from cynosure.auth.audit.cursor import EventCursors
from cynosure.auth.audit.deliver import Delivery
from cynosure.auth.audit.denials import DenialLog
from cynosure.auth.audit.file_sink import FileSink
from cynosure.auth.audit.keeper import Keeper
from cynosure.auth.audit.queries import QueryLog
from cynosure.auth.audit.read import EventReader
from cynosure.auth.audit.sink import Sink
from cynosure.auth.audit.webhook_sink import WebhookSink
from cynosure.auth.ports import Authorizer
from cynosure.auth.settings import AuditSettings
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.tasks import TaskLoop

_POLL_S = 5.0


@dataclass(frozen=True, slots=True)
class Audit:
    """What a serving process uses of it."""

    denials: DenialLog
    events: EventReader
    collector: EventCollector
    keeper: Keeper
    queries: QueryLog


@asynccontextmanager
async def open_audit(
    persistence: Persistence, authorizer: Authorizer, settings: AuditSettings, *, poll_s: float = _POLL_S
) -> AsyncIterator[Audit]:
    """Open it, and take part in keeping it: one of all processes that have it open collects and delivers."""
    names = CatalogNames(persistence)
    async with AsyncExitStack() as stack:
        collector = EventCollector(persistence, names)
        stack.push_async_callback(collector.close)
        denials = DenialLog(
            persistence,
            names,
            failures_per_minute=settings.authentication_failures_per_minute,
            denials_per_minute=settings.denials_per_minute,
        )
        stack.push_async_callback(denials.close)
        deliveries: list[Delivery] = []
        for sink in open_sinks(persistence, settings):
            stack.push_async_callback(sink.close)
            deliveries.append(Delivery(persistence, sink))
        keeper = Keeper(persistence, collector, deliveries, settings)
        cursors = EventCursors(persistence, settings.retention)
        events = EventReader(persistence, authorizer, collector, cursors)
        # Innermost: what it runs uses all of the above, and ends before it does.
        loop = await stack.enter_async_context(TaskLoop(persistence.clock, persistence.rng, poll_s=poll_s))
        loop.register(persistence.tasks, keeper.task())
        yield Audit(denials, events, collector, keeper, QueryLog(persistence))


def open_sinks(persistence: Persistence, settings: AuditSettings) -> list[Sink]:
    """The sinks that are set."""
    sinks: list[Sink] = []
    if settings.file is not None:
        sinks.append(FileSink(settings.file))
    if settings.webhook.url is not None:
        sinks.append(WebhookSink(settings.webhook, persistence.clock, persistence.info.id))
    return sinks
