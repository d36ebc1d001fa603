"""Expired records are removed, as they were seen and not otherwise."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from cynosure.idempotency.cleanup import cleanup_task
from cynosure.idempotency.record import PART, RECORD
from cynosure.idempotency.reservations import Held
from cynosure.persistence.spi import SYSTEM_REALM, RealmId
from cynosure.persistence.store import Store
from tests.idempotency.engines import KEPT_S, SETTINGS, Server, Servers, claim, hash_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    yield servers
    await servers.close()


class Opened:
    """As much of `Persistence` as the task needs."""

    def __init__(self, servers: Servers, server: Server) -> None:
        self.clock = servers.clock
        self._store = server.store

    def store(self, realm: RealmId) -> Store:
        assert realm == SYSTEM_REALM
        return self._store


class Run:
    """A run whose lease is never lost."""

    def check(self) -> None:
        return


async def clean(servers: Servers, server: Server) -> str:
    task = cleanup_task(cast("Any", Opened(servers, server)), SETTINGS)
    return await task.run(cast("Any", Run()))


async def finalize(server: Server, key: str, sealed: bytes = b"sealed") -> None:
    held = await server.reservations.reserve(claim(key=key))
    assert isinstance(held, Held)
    await server.reservations.finalize(held, 404, sealed)


async def test_what_has_expired_is_removed_and_nothing_else(servers: Servers) -> None:
    server = servers.start()
    await finalize(server, "old")
    await servers.clock.advance(KEPT_S - 60)
    await finalize(server, "young")
    await servers.clock.advance(61)

    assert await clean(servers, server) == "removed 1 expired records"

    assert [record.key_hash for record in servers.records()] == [hash_of("young")]


async def test_nothing_is_removed_before_its_time(servers: Servers) -> None:
    server = servers.start()
    await finalize(server, "key")
    await servers.clock.advance(KEPT_S - 1)

    await clean(servers, server)

    assert len(servers.records()) == 1


async def test_a_record_that_nobody_finished_is_removed_as_well(servers: Servers) -> None:
    server = servers.start()
    await server.reservations.reserve(claim())
    await servers.clock.advance(KEPT_S + 1)

    await clean(servers, server)

    assert servers.records() == []


async def test_the_parts_of_a_large_answer_go_with_it(servers: Servers) -> None:
    server = servers.start()
    await finalize(server, "key", bytes(2_000_000))
    assert any(key.type == PART.name for key in servers.rows.rows)
    await servers.clock.advance(KEPT_S + 1)

    await clean(servers, server)

    assert not servers.rows.rows


async def test_a_key_that_was_begun_anew_meanwhile_stays(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, other = servers.start(), servers.start().reservations
    await finalize(server, "key")
    await servers.clock.advance(KEPT_S + 1)
    delete = server.store.delete_each

    async def delete_late(heads: Any, **options: Any) -> int:
        found = await other.reserve(claim(key="key"))
        if heads and not isinstance(found, Held):
            await other.begin_anew(claim(key="key"), found)
        return await delete(heads, **options)

    monkeypatch.setattr(server.store, "delete_each", delete_late)

    assert await clean(servers, server) == "removed 0 expired records"
    assert servers.record.attempt == 2


async def test_more_records_than_are_read_at_once_are_all_removed(servers: Servers) -> None:
    server = servers.start()
    for number in range(1_203):
        await server.reservations.reserve(claim(key=str(number)))
    await servers.clock.advance(KEPT_S + 1)

    assert await clean(servers, server) == "removed 1203 expired records"
    assert not any(key.type == RECORD.name for key in servers.rows.rows)
