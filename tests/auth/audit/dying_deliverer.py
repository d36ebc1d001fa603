"""A process that delivers events and is killed after the sink took a page, before its position is written.

Run: `python dying_deliverer.py STORE WEBHOOK PAGES`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta

from cynosure.auth.audit.deliver import Delivery
from cynosure.auth.audit.events import Event
from cynosure.auth.audit.webhook_sink import WebhookSink
from cynosure.auth.settings import WebhookSettings
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import NodeLeaseSettings, PersistenceSettings


class DyingSink(WebhookSink):
    pages_left = int(sys.argv[3])

    async def deliver(self, events: Sequence[Event]) -> None:
        await super().deliver(events)
        self.pages_left -= 1
        if not self.pages_left:
            os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    lease = NodeLeaseSettings(duration=timedelta(days=4_000), renewal=timedelta(days=2_000))
    async with open_persistence(sys.argv[1], PersistenceSettings(node_lease=lease)) as persistence:
        settings = WebhookSettings(url=Secret(sys.argv[2]), batch_events=3)
        delivery = Delivery(persistence, DyingSink(settings, persistence.clock, persistence.info.id))
        while await delivery.run_once([DEFAULT_REALM], lambda: None):
            pass


asyncio.run(main())
