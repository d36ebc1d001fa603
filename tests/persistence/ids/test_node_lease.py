import asyncio
from typing import Any

import pytest
from msgspec import Raw, msgpack
from msgspec.structs import replace

from cynosure.common.errors import ClockFault, LeaseLost, Unavailable
from cynosure.persistence.ids.node_lease import NODE_LEASE, NodeLeaseRow, NodeLeases, lease_id
from cynosure.persistence.ids.owner import Owner
from cynosure.persistence.ids.snowflake import NODES, snowflake_ms
from cynosure.persistence.objects import Unknown, seal, unseal
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, ObjId, ObjKey, Row

pytestmark = pytest.mark.anyio

SECOND_US = 1_000_000


def leases_of(process: Any, **options: float) -> NodeLeases:
    return NodeLeases(process.store, process.clock, process.rng, process.owner, **options)


async def lease_all_but(world: Any, free: set[int], until_us: int) -> None:
    owner = world.process("others").owner
    value = NodeLeaseRow(holder="x", leased_until_us=until_us, owner=owner, granted_us=0, renewed_us=0)
    blob = seal(NODE_LEASE, value)
    for node in set(range(NODES)) - free:
        key = ObjKey(SYSTEM_REALM, REALM_SCOPE, NODE_LEASE.name, lease_id(node))
        await world.backend.insert(Row(key, blob, "token"))


def test_the_lease_of_a_node_has_timestamp_and_sequence_zero() -> None:
    assert [lease_id(node) for node in (0, 1, 1023)] == [0, 4096, 1023 << 12]


async def test_a_free_node_id_is_leased_by_insert(make_world: Any) -> None:
    world = await make_world()
    process = world.process("host-a")

    lease = await leases_of(process).acquire()

    stored = await process.store.fetch(NODE_LEASE, lease_id(lease.node))
    assert stored == lease.row
    assert stored.value.owner.host == "host-a"
    assert stored.value.leased_until_us == world.clock.now_us() + 60 * SECOND_US
    assert lease.deadline_s == world.clock.monotonic_s() + 60


async def test_the_lease_counts_from_before_the_request_was_sent(make_world: Any, settle: Any) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = ["before", "after", "before"]
    began_s = world.clock.monotonic_s()

    lease = await settle(world, leases_of(process).acquire())

    assert world.clock.monotonic_s() > began_s
    assert lease.deadline_s == began_s + 60


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_lost_answer_of_a_renewal_does_not_lose_the_lease(
    make_world: Any, settle: Any, fault: str
) -> None:
    world = await make_world()
    process = world.process()
    leases = leases_of(process)
    lease = await leases.acquire()
    await world.clock.advance(20)

    process.backend.faults = [fault]
    renewed = await settle(world, leases.renew(lease))

    assert renewed.until_ms > lease.until_ms
    assert renewed.row == await process.store.fetch(NODE_LEASE, lease_id(lease.node))
    assert renewed.row.token != lease.row.token


async def test_a_renewal_recognises_its_own_earlier_attempt(make_world: Any) -> None:
    world = await make_world()
    leases = leases_of(world.process())
    lease = await leases.acquire()
    await leases.renew(lease)  # its answer never reached us, so `lease` is all we know
    await world.clock.advance(20)

    renewed = await leases.renew(lease)

    assert renewed.until_ms == lease.until_ms + 20_000


async def test_an_expired_lease_is_taken_over_only_after_the_skew_margin(make_world: Any) -> None:
    world = await make_world()
    first, second = leases_of(world.process("a")), leases_of(world.process("b"))
    lease = await first.acquire()
    await lease_all_but(world, {lease.node}, until_us=1 << 60)

    await world.clock.advance(64.9)
    with pytest.raises(Unavailable):
        await second.acquire()
    await world.clock.advance(0.1)
    taken = await second.acquire()

    assert taken.node == lease.node
    assert taken.not_before_ms == lease.until_ms
    with pytest.raises(LeaseLost) as lost:
        await first.renew(lease)
    assert lost.value.details["taken_by"] == "b:1"


async def test_a_successor_with_a_fast_clock_starts_where_the_predecessor_had_to_stop(
    make_world: Any,
) -> None:
    world = await make_world()
    first, fast = leases_of(world.process("a")), leases_of(world.process("b", skew_s=3600))
    lease = await first.acquire()
    await lease_all_but(world, {lease.node}, until_us=1 << 60)

    taken = await fast.acquire()

    assert taken.not_before_ms >= lease.until_ms


async def test_a_lease_given_back_is_free_at_once_from_the_last_used_timestamp(make_world: Any) -> None:
    world = await make_world()
    first, second = leases_of(world.process("a")), leases_of(world.process("b"))
    lease = await first.acquire()
    await lease_all_but(world, {lease.node}, until_us=1 << 60)
    now_ms = snowflake_ms(world.clock.now_us())

    await first.release(lease, last_ms=now_ms + 7)
    with pytest.raises(Unavailable):
        await second.acquire()  # ids were borrowed from the next 7 ms
    await world.clock.advance(0.008)
    taken = await second.acquire()

    assert taken.not_before_ms == now_ms + 8


async def test_a_lease_given_back_unused_frees_the_present(make_world: Any, settle: Any) -> None:
    world = await make_world()
    leases = leases_of(world.process("a"))
    lease = await leases.acquire()
    await world.clock.advance(10)

    await leases.release(lease, last_ms=0)

    (status,) = await leases.list()
    assert status.leased_until_us == world.clock.now_us()
    assert not status.is_leased


async def test_renewing_after_the_clock_was_set_back_frees_no_used_timestamps(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    leases = leases_of(process)
    lease = await leases.acquire()

    process.clock.step_wall(-3600)
    renewed = await leases.renew(lease)

    assert renewed.until_ms == lease.until_ms


async def test_a_lease_whose_time_ran_out_is_renewed_if_nobody_took_it(make_world: Any) -> None:
    world = await make_world()
    leases = leases_of(world.process())
    lease = await leases.acquire()
    await world.clock.advance(600)

    renewed = await leases.renew(lease)

    assert renewed.node == lease.node
    assert renewed.until_ms == snowflake_ms(world.clock.now_us()) + 60_000


async def test_a_lease_whose_row_is_gone_is_lost(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    leases = leases_of(process)
    lease = await leases.acquire()
    await process.store.delete_if(NODE_LEASE, lease.row)

    with pytest.raises(LeaseLost):
        await leases.renew(lease)


async def test_when_all_1024_are_leased_the_error_names_the_soonest_and_the_way_out(make_world: Any) -> None:
    """I14."""
    world = await make_world()
    await lease_all_but(world, {77}, until_us=world.clock.now_us() + 3600 * SECOND_US)
    await lease_all_but(world, set(range(NODES)) - {77}, until_us=world.clock.now_us() + 30 * SECOND_US)

    with pytest.raises(Unavailable) as refused:
        await leases_of(world.process()).acquire()

    assert refused.value.details == {"soonest_free": "2026-01-01T00:00:35+00:00", "free_in_s": "35"}
    assert "cynosure store status" in refused.value.fix


async def test_the_last_free_node_id_of_1024_is_found(make_world: Any) -> None:
    world = await make_world()
    await lease_all_but(world, {1023}, until_us=1 << 60)

    lease = await leases_of(world.process()).acquire()

    assert lease.node == 1023


async def test_a_damaged_lease_row_is_passed_over(make_world: Any) -> None:
    world = await make_world()
    await lease_all_but(world, {3, 4}, until_us=1 << 60)
    key = ObjKey(SYSTEM_REALM, REALM_SCOPE, NODE_LEASE.name, lease_id(3))
    await world.backend.insert(Row(key, b"damage", "token"))

    lease = await leases_of(world.process()).acquire()

    assert lease.node == 4


async def test_two_who_race_for_the_last_node_id_do_not_both_get_it(make_world: Any) -> None:
    world = await make_world()
    await lease_all_but(world, {9}, until_us=1 << 60)

    outcomes = await asyncio.gather(
        *(leases_of(world.process(name)).acquire() for name in "abcd"), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NodeLease"] + ["Unavailable"] * 3


async def test_an_acquisition_of_unknown_outcome_goes_on_to_another_node_id(
    make_world: Any, settle: Any
) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = ["after"] + ["before"] * 7 + [""]

    lease = await settle(world, leases_of(process).acquire(), step_s=1)

    rows = await process.store.scan(NODE_LEASE)
    assert len(rows) == 2
    assert lease.row in rows


async def test_a_clock_from_before_2025_leases_nothing(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    process.clock.step_wall(-365 * 24 * 3600)

    with pytest.raises(ClockFault):
        await leases_of(process).acquire()


async def test_the_listing_says_who_holds_what_until_when(make_world: Any) -> None:
    world = await make_world()
    alive, dead = leases_of(world.process("alive"), lease_s=1000), leases_of(world.process("dead"))
    await dead.acquire()
    await alive.acquire()
    await world.clock.advance(100)

    listed = {status.owner.host: status for status in await alive.list()}

    assert listed["alive"].is_leased
    assert not listed["dead"].is_leased
    assert listed["dead"].renewed_us == world.clock.now_us() - 100 * SECOND_US


async def test_fields_of_a_newer_version_survive_a_takeover(make_world: Any) -> None:
    world = await make_world()
    await lease_all_but(world, {8}, until_us=1 << 60)
    process = world.process()
    newer = replace(
        NodeLeaseRow(holder="", leased_until_us=0, owner=process.owner, granted_us=0, renewed_us=0),
        unknown=Unknown(version=9, fields={"zone": Raw(msgpack.encode("eu-1"))}),
    )
    await process.store.insert(NODE_LEASE, lease_id(8), newer)

    lease = await leases_of(process).acquire()

    stored = await process.store.fetch(NODE_LEASE, lease_id(lease.node))
    assert stored.value.unknown == newer.unknown


def test_golden_bytes_of_a_lease(golden: Any) -> None:
    value = NodeLeaseRow(
        holder="00112233445566778899aabb",
        leased_until_us=1_767_225_660_000_000,
        owner=Owner(host="catalog-1", pid=4711, started_us=1_767_225_500_000_000),
        granted_us=1_767_225_600_000_000,
        renewed_us=1_767_225_600_000_000,
    )

    blob = golden("node-lease-v1.bin", seal(NODE_LEASE, value))

    key = ObjKey(SYSTEM_REALM, REALM_SCOPE, NODE_LEASE.name, ObjId(5 << 12))
    assert unseal(NODE_LEASE, key, blob)[0] == value
