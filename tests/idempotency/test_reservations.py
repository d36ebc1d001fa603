"""Records of keys in the store: every step is one compare-and-swap of one row."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cynosure.common.errors import CorruptObject
from cynosure.idempotency import reservations
from cynosure.idempotency.record import PART, Record
from cynosure.idempotency.reservations import Held, Reservations
from cynosure.persistence.ids.snowflake import named_id
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Versioned
from tests.idempotency.engines import KEPT_S, LEASE_S, Servers, claim, hash_of

pytestmark = pytest.mark.anyio

LARGE = bytes(range(256)) * 6_000
"""Larger than any row may be."""


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    yield servers
    await servers.close()


async def reserve(records: Reservations, key: str = "key") -> Held:
    held = await records.reserve(claim(key=key))
    assert isinstance(held, Held)
    return held


async def find(records: Reservations, key: str = "key") -> Versioned[Record]:
    found = await records.reserve(claim(key=key))
    assert not isinstance(found, Held)
    return found


async def test_a_claim_does_not_show_its_key() -> None:
    """I78: it may be printed with whatever holds it."""
    text = "019a8b52-6a0c-7d3e-9f61-2b1c8e7d5a40"

    assert text not in f"{claim(key=text)!r} {[claim(key=text)]}"


async def test_one_of_all_who_reserve_has_it_and_the_others_see_who(servers: Servers) -> None:
    first, second = servers.start().reservations, servers.start().reservations

    tries = await asyncio.gather(*(each.reserve(claim()) for each in (first, second, first, second)))

    assert sum(isinstance(each, Held) for each in tries) == 1
    assert {each.value.holder for each in tries if not isinstance(each, Held)} == {servers.record.holder}


async def test_a_reservation_says_how_long_it_is_held_and_known(servers: Servers) -> None:
    await reserve(servers.start().reservations)

    record, now_us = servers.record, servers.clock.now_us()
    assert (record.state, record.attempt) == ("IN_PROGRESS", 1)
    assert record.lease_until_us == now_us + LEASE_S * 1_000_000
    assert record.expires_us == now_us + KEPT_S * 1_000_000


async def test_one_of_all_who_take_over_has_it(servers: Servers) -> None:
    await reserve(servers.start().reservations)
    others = [servers.start().reservations for _ in range(3)]
    found = [await find(each) for each in others]

    tries = await asyncio.gather(*(each.take_over(seen) for each, seen in zip(others, found, strict=True)))

    assert sum(each is not None for each in tries) == 1
    assert servers.record.attempt == 2


async def test_who_was_taken_over_can_change_nothing_any_more(servers: Servers) -> None:
    records, other = servers.start().reservations, servers.start().reservations
    held = await reserve(records)
    await other.take_over(await find(other))
    taken_over = servers.record

    assert not await records.renew(held)
    assert not await records.finalize(held, 404, b"sealed")
    await records.finalize_in_chain([(held, 200)])
    await records.release(held)
    await records.forget(held)
    assert servers.record == taken_over


async def test_who_did_not_notice_that_it_was_taken_over_can_change_nothing_either(servers: Servers) -> None:
    records, other = servers.start().reservations, servers.start().reservations
    held = await reserve(records)
    await other.take_over(await find(other))

    assert not await records.finalize(held, 404, b"sealed")
    assert servers.record.state == "IN_PROGRESS"


async def test_an_expired_record_is_begun_anew_as_a_further_attempt(servers: Servers) -> None:
    records = servers.start().reservations
    await records.finalize(await reserve(records), 404, b"sealed")
    await servers.clock.advance(KEPT_S)

    held = await records.begin_anew(claim("something else", key="key"), await find(records))

    assert held is not None
    assert (held.record.state, held.record.attempt, held.record.sealed) == ("IN_PROGRESS", 2, b"")
    assert held.record.payload_hash == hash_of("something else")
    assert held.record.expires_us == servers.clock.now_us() + KEPT_S * 1_000_000


async def test_a_released_record_can_be_taken_over_at_once(servers: Servers) -> None:
    records = servers.start().reservations

    await records.release(await reserve(records))

    assert (servers.record.state, servers.record.lease_until_us) == ("IN_PROGRESS", 0)


async def test_a_renewal_holds_it_for_another_lease_and_no_longer_known(servers: Servers) -> None:
    records = servers.start().reservations
    held = await reserve(records)
    before = servers.record
    await servers.clock.advance(3)

    assert await records.renew(held)

    assert servers.record.lease_until_us == before.lease_until_us + 3_000_000
    assert servers.record.expires_us == before.expires_us


async def test_a_renewal_under_way_does_not_make_an_outcome_late(servers: Servers) -> None:
    server = servers.start()
    held = await reserve(server.reservations)
    server.backend.gate.clear()
    renewing = asyncio.create_task(server.reservations.renew(held))
    await server.backend.reached.wait()
    finalizing = asyncio.create_task(server.reservations.finalize(held, 404, b"sealed"))
    server.backend.gate.set()

    assert await renewing
    assert await finalizing
    assert servers.record.state == "FINALIZED"


async def test_a_renewal_that_is_late_gives_no_lease_to_what_was_released(servers: Servers) -> None:
    server = servers.start()
    held = await reserve(server.reservations)
    server.backend.gate.clear()
    releasing = asyncio.create_task(server.reservations.release(held))
    await server.backend.reached.wait()
    renewing = asyncio.create_task(server.reservations.renew(held))
    server.backend.gate.set()
    await asyncio.gather(releasing, renewing)

    assert servers.record.lease_until_us == 0


async def test_a_forgotten_record_is_gone(servers: Servers) -> None:
    records = servers.start().reservations

    await records.forget(await reserve(records))

    assert servers.records() == []


# --- answers ----------------------------------------------------------------------------------------


async def test_a_small_answer_is_in_its_record(servers: Servers) -> None:
    records = servers.start().reservations

    await records.finalize(await reserve(records), 404, b"sealed")

    found = (await find(records)).value
    assert (found.status, found.is_in_chain, found.parts) == (404, False, ())
    assert await records.load_sealed(found) == b"sealed"
    assert len(servers.rows.rows) == 1


async def test_a_large_answer_is_kept_in_parts(servers: Servers) -> None:
    records = servers.start().reservations

    assert await records.finalize(await reserve(records), 200, LARGE)

    found = (await find(records)).value
    assert (found.sealed, len(found.parts) > 1) == (b"", True)
    assert await records.load_sealed(found) == LARGE


async def test_a_large_answer_without_one_of_its_parts_is_damage(servers: Servers) -> None:
    records = servers.start().reservations
    await records.finalize(await reserve(records), 200, LARGE)
    found = (await find(records)).value
    key = next(key for key in servers.rows.rows if key.type == PART.name)
    del servers.rows.rows[key]

    with pytest.raises(CorruptObject):
        await records.load_sealed(found)


async def test_what_is_in_the_chain_is_not_kept_a_second_time(servers: Servers) -> None:
    records = servers.start().reservations

    await records.finalize_in_chain([(await reserve(records), 200)])

    assert (servers.record.status, servers.record.is_in_chain, servers.record.sealed) == (200, True, b"")


# --- keys that want the same row --------------------------------------------------------------------


@pytest.fixture
def one_first_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the key, its first row is the same."""

    def slot_id(key_hash: str, slot: int) -> ObjId:
        return named_id("first" if slot == 0 else f"{key_hash}/{slot}")

    monkeypatch.setattr(reservations, "_slot_id", slot_id)


@pytest.mark.usefixtures("one_first_slot")
async def test_keys_that_want_the_same_row_have_a_record_each(servers: Servers) -> None:
    records = servers.start().reservations
    await reserve(records, "one")
    await reserve(records, "two")

    assert (await find(records, "one")).value.key_hash == hash_of("one")
    assert (await find(records, "two")).value.key_hash == hash_of("two")


async def test_more_keys_than_there_are_rows_for_them_are_refused(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservations, "_slot_id", lambda key_hash, slot: named_id(str(slot)))
    records = servers.start().reservations
    for number in range(reservations._SLOTS):
        await reserve(records, str(number))

    with pytest.raises(CorruptObject):
        await records.reserve(claim(key="one too many"))
