"""Servers that die, are slow, or cannot say what came of a request."""

import asyncio

import pytest

from cynosure.common.errors import Unavailable
from cynosure.testing.crash_matrix.halting import When, Write
from cynosure.testing.idempotency_kit.fixtures import Fixtures
from cynosure.testing.idempotency_kit.world import (
    CATALOGS,
    REPLAYED,
    SLOW,
    Side,
    abandon,
    create,
    error_of,
    is_same,
    names,
    namespace,
    new_key,
)
from cynosure.testing.small_servers import SmallServers


class Deaths(Fixtures):
    """Servers that die, are slow, or cannot say what came of a request."""

    @pytest.mark.parametrize(("when", "write"), [("after", "commit"), ("before", "finalize")])
    async def test_what_a_dead_server_had_committed_is_found_and_told(
        self, first: Side, second: Side, when: When, write: Write
    ) -> None:
        """I73, I74."""
        chain, key = second.chain(), new_key()
        heads = await chain.heads()
        held = first.gate.hold(write, when)
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        first.gate.cut()

        told = await create(second, key)
        again = await create(second, key)

        assert told.status_code == 200
        assert told.headers[REPLAYED] == "true"
        assert is_same(again, told)
        assert (await chain.since(heads)).changes() == {"namespace-created": 1}
        await abandon(sent)

    @pytest.mark.parametrize(
        ("when", "write"), [("before", "reserve"), ("after", "reserve"), ("before", "commit")]
    )
    async def test_what_a_dead_server_had_not_committed_is_done_by_another(
        self, first: Side, second: Side, when: When, write: Write
    ) -> None:
        """I73, I74."""
        chain, key = second.chain(), new_key()
        heads = await chain.heads()
        held = first.gate.hold(write, when)
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        first.gate.cut()

        told = await create(second, key)

        assert told.status_code == 200
        assert (await chain.since(heads)).changes() == {"namespace-created": 1}

        # It was not dead but slow.
        first.gate.mend()
        held.let_go.set()
        late = await sent

        assert is_same(late, told)
        assert (await chain.since(heads)).changes() == {"namespace-created": 1}

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_a_client_that_hangs_up_and_asks_again_is_served_once(
        self, first: Side, second: Side, when: When
    ) -> None:
        """I73, I74."""
        chain, key = second.chain(), new_key()
        heads = await chain.heads()
        held = first.gate.hold("commit", when)
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        await abandon(sent)

        again = asyncio.create_task(create(second, key))
        held.let_go.set()
        once_more = await create(first, key)

        assert (await again).status_code == 200
        assert is_same(once_more, await again)
        assert (await chain.since(heads)).changes() == {"namespace-created": 1}

    async def test_what_was_refused_meanwhile_is_not_done_by_a_server_that_was_only_slow(
        self, first: Side, second: Side
    ) -> None:
        """I77."""
        key = new_key()
        held = first.gate.hold("commit")
        sent = asyncio.create_task(create(first, key))
        await held.wait_reached()
        first.gate.cut()
        await second.http.post(first.namespaces, json=namespace())
        refused = await create(second, key)
        await second.http.delete(f"{first.namespaces}/a")

        first.gate.mend()
        held.let_go.set()
        late = await sent

        assert refused.status_code == 409
        assert is_same(late, refused)
        assert await names(second) == []

    async def test_a_catalog_whose_drop_was_refused_meanwhile_can_be_used_when_a_slow_server_goes_on(
        self, first: Side, second: Side
    ) -> None:
        """I77: what a drop does before its commit is taken back."""
        headers = {"Idempotency-Key": new_key()}
        path = f"{CATALOGS}/{first.lake.rpartition('/')[2]}"
        await first.http.get(first.namespaces)
        held = first.gate.hold("part")
        sent = asyncio.create_task(first.http.delete(path, headers=headers))
        await held.wait_reached()
        first.gate.cut()
        await second.http.post(second.namespaces, json=namespace())
        refused = await second.http.delete(path, headers=headers)
        await second.http.delete(f"{second.namespaces}/a")

        first.gate.mend()
        held.let_go.set()
        late = await sent
        made = await second.http.post(second.namespaces, json=namespace("b"))

        assert refused.status_code == 400
        assert is_same(late, refused)
        assert made.status_code == 200

    @pytest.mark.parametrize("write", ["reserve", "commit"])
    async def test_an_error_of_the_server_is_not_kept_and_the_next_try_need_not_wait(
        self, servers: SmallServers, write: str
    ) -> None:
        """I74."""
        first, second = await self.both(servers, **SLOW)
        key = new_key()
        first.gate.refuse(write, Unavailable("The database is away"))

        failed = await create(first, key)
        first.gate.accept()
        # Before the first one's lease is out.
        async with asyncio.timeout(40):
            made = await create(second, key)
            again = await create(first, key)

        assert failed.status_code == 503
        assert made.status_code == 200
        assert is_same(again, made)

    async def test_a_refusal_that_cannot_be_kept_is_not_told(self, first: Side, second: Side) -> None:
        """I74."""
        await first.http.post(first.namespaces, json=namespace())
        key = new_key()
        first.gate.refuse("finalize", Unavailable("The database is away"))

        failed = await create(first, key)
        first.gate.accept()
        refused = await create(second, key)

        assert failed.status_code in (503, 504)
        assert error_of(refused) == (409, "AlreadyExistsException")
        assert is_same(await create(first, key), refused)
