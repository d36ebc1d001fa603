import contextlib
import itertools
from typing import Any

import pytest

from cynosure.common.errors import ClockFault, CynosureError, LeaseLost, Misconfigured, Unavailable
from cynosure.persistence.ids import LeasedIds, NodeLeases
from cynosure.persistence.ids.node_lease import NODE_LEASE, lease_id
from cynosure.persistence.ids.snowflake import decompose, snowflake_ms
from cynosure.persistence.spi import ObjId

pytestmark = pytest.mark.anyio


def leased_ids(process: Any, *, lease_s: float = 60, renew_every_s: float = 20) -> LeasedIds:
    leases = NodeLeases(
        process.store, process.clock, process.rng, process.owner, lease_s=lease_s, skew_margin_s=5
    )
    return LeasedIds(leases, process.clock, process.rng, renew_every_s=renew_every_s)


async def rest(world: Any) -> None:
    """Lets everything happen that needs no time."""
    for _ in range(5):
        await world.clock.advance(0)


async def take_over(world: Any, node: int) -> None:
    """Somebody whose clock is far ahead takes the node id."""
    thief = world.process("thief", skew_s=24 * 3600)
    leases = NodeLeases(thief.store, thief.clock, thief.rng, thief.owner)
    thief.rng.sample = lambda population, count: [node] * count
    assert (await leases.acquire()).node == node


async def test_a_lease_is_renewed_for_as_long_as_it_is_used(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)

    async with holder as ids:
        node = holder.lease.node
        made = []
        for _ in range(100):
            await world.clock.advance(7)
            made.append(ids.next())

    assert {decompose(obj_id).node for obj_id in made} == {node}
    assert made == sorted(set(made))


async def test_leaving_gives_the_lease_back_and_ends_the_ids(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)
    async with holder as ids:
        node = holder.lease.node
        last = ids.next()

    stored = await process.store.fetch(NODE_LEASE, lease_id(node))
    assert stored.value.holder == ""
    assert snowflake_ms(stored.value.leased_until_us) == decompose(last).timestamp_ms + 1
    with pytest.raises(LeaseLost):
        ids.next()


async def test_a_lost_lease_is_refused_and_replaced_and_ids_go_on_increasing(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)

    async with holder as ids:
        first_node = holder.lease.node
        before = ids.next()
        await take_over(world, first_node)
        await world.clock.advance(20)
        await rest(world)
        after = ids.next()

    assert decompose(after).node != first_node
    assert after > before


async def test_a_process_stopped_past_its_lease_refuses_at_once_then_renews(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)

    async with holder as ids:
        ids.next()
        process.clock.stop()
        await world.clock.advance(300)
        process.clock.go_on()
        with pytest.raises(LeaseLost):
            ids.next()
        await rest(world)

        assert ids.next()


async def test_a_process_stopped_past_its_lease_and_robbed_goes_on_with_another_node(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)

    async with holder as ids:
        first_node = holder.lease.node
        before = ids.next()
        process.clock.stop()
        await world.clock.advance(300)
        await take_over(world, first_node)
        process.clock.go_on()
        with pytest.raises(LeaseLost):
            ids.next()
        await rest(world)

        assert ids.next() > before
        assert holder.lease.node != first_node


async def test_ids_go_on_while_the_database_is_down_until_the_lease_ends(make_world: Any) -> None:
    world = await make_world()
    process = world.process()

    async with leased_ids(process) as ids:
        process.backend.is_down = True
        await world.clock.advance(59)
        assert ids.next()
        await world.clock.advance(1)
        with pytest.raises(LeaseLost):
            ids.next()
        process.backend.is_down = False
        await world.clock.advance(5)

        assert ids.next()


async def test_refused_ids_do_not_make_the_renewal_spin(make_world: Any) -> None:
    world = await make_world()
    process = world.process()

    async with leased_ids(process) as ids:
        process.backend.is_down = True
        await world.clock.advance(60)
        process.backend.writes = 0
        for _ in range(200):
            with pytest.raises(LeaseLost):
                ids.next()
            await world.clock.advance(0.05)

        assert process.backend.writes <= 10


async def test_a_clock_set_forward_past_the_lease_renews_at_once(make_world: Any) -> None:
    world = await make_world()
    process = world.process()

    async with leased_ids(process) as ids:
        process.clock.step_wall(3600)
        with pytest.raises(LeaseLost):
            ids.next()
        await rest(world)

        assert ids.next()


async def test_a_clock_set_back_is_refused_and_the_lease_is_kept_meanwhile(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    holder = leased_ids(process)

    async with holder as ids:
        before, node = ids.next(), holder.lease.node
        process.clock.step_wall(-100)
        for _ in range(9):
            with pytest.raises(ClockFault):
                ids.next()
            await world.clock.advance(10)
        await world.clock.advance(10)

        assert ids.next() > before
        assert holder.lease.node == node


async def test_a_restart_after_a_clock_set_back_does_not_wait(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    async with leased_ids(process) as ids:
        before = ids.next()
        process.clock.step_wall(-3600)

    async with leased_ids(process) as ids:
        assert decompose(ids.next()).node != decompose(before).node


async def test_an_exit_that_cannot_reach_the_database_does_not_fail(make_world: Any) -> None:
    world = await make_world()
    process = world.process()

    async with leased_ids(process):
        process.backend.is_down = True

    assert world.clock.sleeping == 0


async def test_entering_without_a_database_says_so(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    process.backend.is_down = True

    with pytest.raises(Unavailable):
        async with leased_ids(process):
            pytest.fail("entered without a lease")


async def test_a_renewal_that_leaves_no_room_for_a_failure_is_refused(make_world: Any) -> None:
    world = await make_world()

    with pytest.raises(Misconfigured, match="Renew at least twice"):
        leased_ids(world.process(), lease_s=30)


class Inhabitant:
    """A process that lives, is stopped, crashes and comes back, and makes ids whenever it runs."""

    def __init__(self, world: Any, name: str, skew_s: float) -> None:
        self.world, self.name, self.skew_s = world, name, skew_s
        self.last = ObjId(0)
        self.used_ms: dict[tuple[int, str], tuple[int, int]] = {}
        """First and last timestamp used, by node id and grant."""
        self.made: list[ObjId] = []
        self.holder: LeasedIds | None = None

    async def start(self) -> None:
        rng = self.world.rng
        self.process = process = self.world.process(self.name, skew_s=self.skew_s)
        process.rng.sample = lambda population, count: [process.rng.randrange(3) for _ in range(12)]
        process.backend.draw_fault = lambda: rng.choices(["", "before", "after", "down"], [20, 1, 1, 2])[0]
        process.backend.draw_delay_s = lambda: rng.choices([0.0, 0.2, 3.0], [30, 10, 1])[0]
        holder = leased_ids(process, lease_s=10, renew_every_s=3)
        self.ids = await holder.__aenter__()
        self.holder, self.last = holder, ObjId(0)

    async def leave(self, *, cleanly: bool) -> None:
        """A clean exit, or kill -9: nothing is written any more, but what was sent may still arrive."""
        holder, self.holder = self.holder, None
        self.process.backend.is_down = not cleanly
        self.process.clock.go_on()
        await holder.__aexit__(None, None, None)

    def make_ids(self) -> set[int]:
        """Makes some ids, if it can at this instant, and says under which node ids."""
        nodes: set[int] = set()
        if self.holder is None or self.process.clock.is_stopped:
            return nodes
        for _ in range(self.world.rng.choices([1, 3, 4200], [200, 200, 1])[0]):
            try:
                obj_id = self.ids.next()
            except CynosureError:
                break
            assert obj_id > self.last
            self.last = obj_id
            self.made.append(obj_id)
            at_ms, node, _ = decompose(obj_id)
            nodes.add(node)
            grant = (node, self.holder.lease.row.value.holder)
            self.used_ms[grant] = (self.used_ms.get(grant, (at_ms, 0))[0], at_ms)
        return nodes


@pytest.mark.parametrize("seed", range(8))
async def test_no_id_twice_and_no_two_holders_whatever_happens(
    make_world: Any, settle: Any, seed: int
) -> None:
    """I14, I15. Three node ids, four processes. Odd seeds: clocks too wrong to prevent two holders."""
    world = await make_world(seed)
    rng = world.rng
    is_sane = seed % 2 == 0
    worst_skew_s = 2.5 if is_sane else 30.0
    people = [Inhabitant(world, name, rng.uniform(-worst_skew_s, worst_skew_s)) for name in "abcd"]

    def check_holders() -> None:
        rng.shuffle(people)
        holders = [node for person in people for node in person.make_ids()]
        assert not is_sane or len(holders) == len(set(holders)), "two processes hold the same node id"

    for _ in range(250):
        person = rng.choice(people)
        action = rng.random()
        if person.holder is None:
            with contextlib.suppress(Unavailable):
                await settle(world, person.start(), step_s=0.5)
        elif action < 0.15:
            person.process.clock.stop()
        elif action < 0.5:
            person.process.clock.go_on()
        elif action < 0.58:
            await settle(world, person.leave(cleanly=rng.random() < 0.5), step_s=0.5)
        elif action < 0.65 and not is_sane:
            person.process.clock.step_wall(rng.uniform(-30, 30))
        check_holders()
        await world.clock.advance(rng.choice([0.0, 0.001, 0.5, 1.0, 1.0, 2.0, 5.0]))
        check_holders()

    for person in people:
        if person.holder is not None:
            await settle(world, person.leave(cleanly=False), step_s=0.5)
    made = [obj_id for person in people for obj_id in person.made]
    assert len(made) == len(set(made)) > 50
    for node in range(3):
        ranges = sorted(
            used for person in people for grant, used in person.used_ms.items() if grant[0] == node
        )
        # Stronger than unique ids: no timestamp of a node id belongs to two grants.
        assert all(earlier[1] < later[0] for earlier, later in itertools.pairwise(ranges)), ranges
