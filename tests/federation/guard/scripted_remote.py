"""A remote of which only one read and one change are used, each doing what a test says."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from cynosure.catalog.names import Namespace
from cynosure.federation.remote import Abilities


class ScriptedRemote:
    """Raises or answers what is next in `script`; an event is waited for first. Else it answers."""

    abilities = Abilities(has_views=True, has_nested_namespaces=True, has_transactions=True)

    def __init__(self, *script: Any) -> None:
        self.script = deque(script)
        self.asked = 0
        self.running = 0
        self.most_running = 0
        self.order: list[Namespace] = []
        self.is_closed = False

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        return await self._do(namespace)

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:
        await self._do(namespace)

    async def close(self) -> None:
        self.is_closed = True

    async def _do(self, namespace: Namespace) -> Any:
        self.asked += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.order.append(namespace)
        step = self.script.popleft() if self.script else {}
        try:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, BaseException):
                raise step
            return step
        finally:
            self.running -= 1
