"""Keys that expire, and the records they leave."""

from typing import Final

from cynosure.idempotency.cleanup import cleanup_task
from cynosure.testing.idempotency_kit.fixtures import Fixtures
from cynosure.testing.idempotency_kit.world import (
    QUICK,
    all_noted,
    create,
    error_of,
    is_same,
    list_records,
    names,
    namespace,
    new_key,
)
from cynosure.testing.small_servers import SmallServers

BRIEF: Final = {"idempotency__lifetime": "60s", "idempotency__buffer": "20s"}
"""Long enough that nothing expires by itself, however slow a machine is: ten seconds are left everywhere."""


class Lifetimes(Fixtures):
    """Keys that expire, and the records they leave."""

    async def test_an_expired_key_is_as_good_as_unknown(self, servers: SmallServers) -> None:
        """I73, I75."""
        brief = {**BRIEF, **QUICK}
        first = await self.furnished(await servers.start(**brief))
        before = await list_records(first)
        key, other = new_key(), new_key()
        made = await create(first, key)
        await create(first, other, namespace("b"))
        await all_noted(first, before)
        servers.clock.advance(45)
        in_time = await create(first, key)
        servers.clock.advance(55)

        late = await create(first, key)
        another_payload = await create(first, other, namespace("c"))

        assert is_same(in_time, made)
        assert error_of(late) == (409, "AlreadyExistsException")
        assert another_payload.status_code == 200
        assert await names(first) == ["a", "b", "c"]

    async def test_the_cleanup_removes_what_has_expired_and_nothing_else(self, servers: SmallServers) -> None:
        """I73."""
        brief = {**BRIEF, **QUICK}
        first = await self.furnished(await servers.start(**brief))
        before = await list_records(first)
        young = new_key()
        await create(first, new_key())
        refused = await create(first, new_key())
        old = await list_records(first) - before
        await all_noted(first, before)
        servers.clock.advance(70)
        made = await create(first, young, namespace("b"))
        await all_noted(first, before)
        new = await list_records(first) - before - old
        persistence = first.server.persistence
        task = cleanup_task(persistence, first.server.settings.idempotency)

        await persistence.tasks.run_now(task)
        too_early = await list_records(first)
        servers.clock.advance(20)
        await persistence.tasks.run_now(task)
        in_time = await list_records(first)

        assert refused.status_code == 409
        assert (len(old), len(new)) == (2, 1)
        assert too_early >= old | new
        assert in_time & (old | new) == new
        assert is_same(await create(first, young, namespace("b")), made)
