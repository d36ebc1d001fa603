"""Whoever waits for another attempt is judged when it is told, not when it came: I76."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from cynosure.api.messages import Request, Response
from cynosure.testing.admin import Grant
from tests.api.world import World
from tests.robustness.attacks.idempotency.lake import CHANGE, NAMESPACES, TABLES, keyed

pytestmark = pytest.mark.anyio

CONTENT = Grant("CATALOG_MANAGE_CONTENT")


class Stopped:
    """The next request of an operation stops when it is done or refused, before that is stored or told."""

    def __init__(self, world: World, operation_id: str) -> None:
        (route,) = [each for each in world.service.routes if each.operation_id == operation_id]
        self.is_done = asyncio.Event()
        self.go_on = asyncio.Event()
        handler: Callable[[Request], Awaitable[Response]] = route.handler

        async def stop(request: Request) -> Response:
            try:
                return await handler(request)
            finally:
                if not self.is_done.is_set():
                    self.is_done.set()
                    await self.go_on.wait()

        object.__setattr__(route, "handler", stop)


@pytest.mark.parametrize(
    ("operation_id", "url", "body"),
    [
        ("createNamespace", NAMESPACES, {"namespace": ["x"]}),
        ("updateTable", f"{TABLES}/t", CHANGE),
        ("createTable", TABLES, {"name": "t", "schema": {"type": "struct", "fields": []}}),
    ],
    ids=["done", "committed", "refused"],
)
async def test_who_loses_the_right_while_it_waits_is_told_nothing(
    world: World, root: httpx.AsyncClient, operation_id: str, url: str, body: object
) -> None:
    admin = world.admin(root)
    credential = await admin.create_user("ann", "lake", CONTENT)
    # The catalog is known to this server, so that a request reads all heads that it will need when it comes.
    await root.get(NAMESPACES)
    async with await world.login(credential) as ann:
        stopped = Stopped(world, operation_id)
        first = asyncio.create_task(ann.post(url, json=body, headers=keyed()))
        await stopped.is_done.wait()
        second = asyncio.create_task(ann.post(url, json=body, headers=keyed()))
        for _ in range(100):
            await asyncio.sleep(0)
        await admin.revoke("lake", "ann_catalog_role", CONTENT)
        stopped.go_on.set()
        answers = [await first, await second]

    assert answers[1].status_code == 403, answers[1].text
