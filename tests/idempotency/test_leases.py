"""Reservations are renewed for as long as their requests are executed, and no longer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from cynosure.common.errors import Unavailable
from cynosure.idempotency.leases import Leases
from cynosure.idempotency.record import RECORD
from cynosure.idempotency.reservations import Held
from cynosure.persistence.spi import ObjId
from tests.idempotency.engines import LEASE_S, Server, Servers, claim

pytestmark = pytest.mark.anyio


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    yield servers
    await servers.close()


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.start()


@pytest.fixture
async def leases(servers: Servers, server: Server) -> AsyncIterator[Leases]:
    leases = Leases(server.reservations, servers.clock, lease_s=LEASE_S)
    yield leases
    await leases.close()


async def reserve(server: Server, key: str = "key") -> Held:
    held = await server.reservations.reserve(claim(key=key))
    assert isinstance(held, Held)
    server.backend.written.clear()
    return held


@contextmanager
def kept(leases: Leases, held: Held) -> Iterator[None]:
    """A request that is being executed."""
    leases.keep(held)
    try:
        yield
    finally:
        leases.leave(held)


async def left_s(servers: Servers, server: Server, held: Held) -> float:
    """How long the lease runs from now on, as others see it."""
    found = await server.store.fetch(RECORD, held.current.id)
    assert found is not None
    return (found.value.lease_until_us - servers.clock.now_us()) / 1_000_000


async def test_a_request_that_takes_long_keeps_its_lease(
    servers: Servers, server: Server, leases: Leases
) -> None:
    held = await reserve(server)
    with kept(leases, held):
        for _ in range(20):
            await servers.clock.advance(LEASE_S / 4)
            assert await left_s(servers, server, held) > 0


async def test_a_request_that_ends_soon_costs_no_renewal(
    servers: Servers, server: Server, leases: Leases
) -> None:
    held = await reserve(server)
    with kept(leases, held):
        await servers.clock.advance(LEASE_S / 4)

    await servers.clock.advance(3 * LEASE_S)

    assert server.backend.written == []


async def test_a_request_that_has_ended_is_not_renewed(
    servers: Servers, server: Server, leases: Leases
) -> None:
    held = await reserve(server)
    with kept(leases, held):
        await servers.clock.advance(2 * LEASE_S)

    await servers.clock.advance(2 * LEASE_S)

    assert await left_s(servers, server, held) < 0


async def test_one_that_came_later_is_renewed_in_time_as_well(
    servers: Servers, server: Server, leases: Leases
) -> None:
    with kept(leases, await reserve(server, "one")):
        await servers.clock.advance(LEASE_S / 3 - 0.1)
        later = await reserve(server, "two")
        with kept(leases, later):
            for _ in range(12):
                await servers.clock.advance(LEASE_S / 4)
                assert await left_s(servers, server, later) > 0


async def test_a_renewal_that_fails_is_tried_again_in_time(
    servers: Servers, server: Server, leases: Leases
) -> None:
    held = await reserve(server)
    with kept(leases, held):
        server.backend.errors = [Unavailable("The database does not answer")]
        await servers.clock.advance(LEASE_S - 0.1)

        assert server.backend.errors == []
        assert await left_s(servers, server, held) > 0


async def test_a_renewal_that_hangs_does_not_let_the_others_run_out(
    servers: Servers, server: Server, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, other = await reserve(server, "one"), await reserve(server, "two")
    renew, never = server.reservations.renew, asyncio.Event()

    async def hang(held: Held) -> bool:
        if held is hanging:
            await never.wait()
        return await renew(held)

    monkeypatch.setattr(server.reservations, "renew", hang)
    with kept(leases, hanging), kept(leases, other):
        await servers.clock.advance(5 * LEASE_S)

        assert await left_s(servers, server, other) > 0
        assert await left_s(servers, server, hanging) < 0


async def test_what_was_taken_over_is_left_alone(servers: Servers, server: Server, leases: Leases) -> None:
    held = await reserve(server)
    with kept(leases, held):
        other = servers.start().reservations
        found = await other.reserve(claim(key="key"))
        assert not isinstance(found, Held)
        await other.take_over(found)
        await servers.clock.advance(LEASE_S)
        tries = len(server.backend.written)
        await servers.clock.advance(3 * LEASE_S)

    assert held.is_lost
    assert len(server.backend.written) == tries


async def test_nothing_is_renewed_after_the_end(servers: Servers, server: Server, leases: Leases) -> None:
    held = await reserve(server)
    with kept(leases, held):
        await leases.close()
        await servers.clock.advance(2 * LEASE_S)

    assert server.backend.written == list[ObjId]()
    assert servers.clock.sleeping == 0
