import asyncio
import time
from datetime import timedelta
from itertools import pairwise

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import Unavailable
from cynosure.query.refreshing import CredentialRefresher
from cynosure.query.scan_task import Credentials
from cynosure.query.settings import BrokerSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_broker import HeldScan, SmallBroker, make_task

pytestmark = pytest.mark.anyio


class Catalog:
    """Gives credentials of one life, and can be down."""

    def __init__(self, clock: ManualClock, life_s: float) -> None:
        self.clock = clock
        self.life_s = life_s
        self.asked_s: list[float] = []
        self.is_down = False

    def make(self) -> Credentials:
        return Credentials(0, {"n": str(len(self.asked_s))}, self.expires_ms())

    def expires_ms(self) -> int:
        return round(self.clock.now_us() / 1_000 + self.life_s * 1_000)

    async def renew(self) -> Credentials:
        self.asked_s.append(self.clock.monotonic_s() - 1_000)
        if self.is_down:
            raise Unavailable("The catalog does not answer")
        return self.make()


@pytest.fixture
async def refresher(manual_clock):
    refresher = CredentialRefresher(BrokerSettings(), manual_clock)
    refresher.start()
    yield refresher
    await refresher.close()


async def test_a_life_of_fifteen_minutes_is_renewed_five_minutes_before_its_end(refresher, manual_clock):
    catalog = Catalog(manual_clock, 900)
    published: list[Credentials] = []
    refresher.register("k", catalog.make(), catalog.renew, published.append)

    await manual_clock.advance(1_900)

    assert catalog.asked_s == [600, 1_200, 1_800]
    assert [each.number for each in published] == [1, 2, 3]
    assert refresher.get("k") == published[-1]


async def test_a_short_life_is_renewed_at_its_half(refresher, manual_clock):
    catalog = Catalog(manual_clock, 2)
    refresher.register("k", catalog.make(), catalog.renew, lambda _: None)

    await manual_clock.advance(5.5)

    assert catalog.asked_s == [1, 2, 3, 4, 5]


async def test_a_failed_renewal_is_tried_until_the_end_and_not_beyond(refresher, manual_clock):
    catalog = Catalog(manual_clock, 900)
    published: list[Credentials] = []
    refresher.register("k", catalog.make(), catalog.renew, published.append)
    catalog.is_down = True

    await manual_clock.advance(3_000)

    assert catalog.asked_s[:5] == [600, 601, 603, 607, 615]
    assert all(later - sooner <= 30 for sooner, later in pairwise(catalog.asked_s))
    assert 890 < catalog.asked_s[-1] < 902
    assert published == []


async def test_a_catalog_that_comes_back_in_time_is_enough(refresher, manual_clock):
    catalog = Catalog(manual_clock, 900)
    published: list[Credentials] = []
    refresher.register("k", catalog.make(), catalog.renew, published.append)
    catalog.is_down = True
    await manual_clock.advance(800)
    catalog.is_down = False
    await manual_clock.advance(31)
    assert [each.number for each in published] == [1]


async def test_credentials_without_an_end_are_left_alone(refresher, manual_clock):
    catalog = Catalog(manual_clock, 900)
    refresher.register("k", Credentials(), catalog.renew, lambda _: None)
    await manual_clock.advance(10_000)
    assert catalog.asked_s == []


async def test_a_catalog_that_gives_ended_ones_is_not_flooded(refresher, manual_clock):
    catalog = Catalog(manual_clock, -5)
    refresher.register("k", catalog.make(), catalog.renew, lambda _: None)
    await manual_clock.advance(10)
    assert 10 <= len(catalog.asked_s) <= 41


async def test_nothing_is_published_after_unregister(refresher, manual_clock):
    let_go = asyncio.Event()
    asked = asyncio.Event()
    published: list[Credentials] = []

    async def renew() -> Credentials:
        asked.set()
        await let_go.wait()
        return Credentials(5)

    ends_soon = Credentials(0, {}, round(manual_clock.now_us() / 1_000) + 2_000)
    refresher.register("k", ends_soon, renew, published.append)
    await manual_clock.advance(1.5)
    await asked.wait()

    refresher.unregister("k")
    let_go.set()
    await manual_clock.advance(60)

    assert published == []
    assert refresher.get("k") is None


async def test_a_wall_clock_that_is_set_forward_is_noticed_at_the_next_look(refresher, manual_clock):
    catalog = Catalog(manual_clock, 3_600)
    refresher.register("k", catalog.make(), catalog.renew, lambda _: None)
    await manual_clock.advance(1)
    manual_clock.step_wall(3_500)
    await manual_clock.advance(60)
    assert len(catalog.asked_s) == 1


async def test_later_files_of_a_running_scan_are_read_with_newer_credentials():
    renewals = 0
    # Not before the first file was begun, however long that takes.
    begun = asyncio.Event()

    def ending_soon() -> Credentials:
        return Credentials(0, {"s3.secret-access-key": "the-credential"}, round(time.time() * 1_000) + 1_000)

    async def renew() -> Credentials:
        nonlocal renewals
        await begun.wait()
        renewals += 1
        return ending_soon()

    async with SmallBroker(heartbeat=timedelta(milliseconds=200)) as small:
        held = HeldScan()
        tasks = [make_task(name, files=2, credentials=ending_soon()) for name in ("f0", "f1")]
        query = small.open("q", tasks, renew=renew)
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()
        begun.set()
        await small.wait_for(lambda: renewals >= 2)
        [stream] = query.live()
        newest = small.broker.refresher.get(("q", "cyn_0"))
        assert newest is not None
        watch = held.watch
        assert watch is not None
        await small.wait_for(lambda: watch.credentials().number >= 2)
        held.let_go(1)
        await held.wait_reached()
        held.let_go(1)

        first, second = await running

        assert first == 0
        assert second >= 2
        # A fragment that begins later begins with the newest, and one renewal served both.
        assert (await small.read(query, "f1", place="0/1"))[0] >= 2
        query.close()
        done = renewals
        await asyncio.sleep(0.8)
        assert renewals == done
        assert stream.rows == 2


async def test_the_system_clock_serves_too():
    refresher = CredentialRefresher(BrokerSettings(), SystemClock())
    refresher.start()
    refresher.start()
    await refresher.close()
