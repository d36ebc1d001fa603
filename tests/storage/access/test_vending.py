"""Credentials in memory: how often a vendor is asked, and who gets what. Promise I58."""

import asyncio

import pytest
from msgspec.structs import replace

from cynosure.common.telemetry.metrics import render
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.vendor_kit import ALICE, BOB

pytestmark = pytest.mark.anyio
HOUR_MS = 3_600_000
ORDERS = Scope((Location.parse("s3://bkt/orders"),), is_writable=True)


class MemoryVendor:
    """Counts what it is asked; answers when the gate is open."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked: list[tuple[Scope, Subject]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        self.asked.append((scope, subject))
        number = len(self.asked)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        now_ms = self.clock.now_us() // 1000
        credentials = tuple(Credential(each.text, {"number": str(number)}) for each in scope.locations)
        return Vended(credentials, now_ms, now_ms + HOUR_MS)


@pytest.fixture
def vendor(manual_clock: ManualClock) -> MemoryVendor:
    return MemoryVendor(manual_clock)


@pytest.fixture
def vending(vendor: MemoryVendor, manual_clock: ManualClock) -> Vending:
    return Vending(vendor, manual_clock, kind="test", timeout_s=5)


async def test_what_was_vended_is_vended_again_until_half_of_its_life_is_over(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock
):
    first = await vending.vend(ORDERS, ALICE)
    await manual_clock.advance(HOUR_MS / 2 / 1000)

    assert await vending.vend(ORDERS, ALICE) is first
    assert vending.get(ORDERS, ALICE) is first
    await manual_clock.advance(0.001)
    assert vending.get(ORDERS, ALICE) is None
    second = await vending.vend(ORDERS, ALICE)

    assert second is not first
    assert len(vendor.asked) == 2


@pytest.mark.parametrize("part", [0.0, 0.25, 0.9])
async def test_the_part_that_must_be_left_is_a_setting(
    vendor: MemoryVendor, manual_clock: ManualClock, part: float
):
    vending = Vending(vendor, manual_clock, min_remaining=part)
    first = await vending.vend(ORDERS, ALICE)

    await manual_clock.advance(HOUR_MS / 1000 * (1 - part))
    assert vending.get(ORDERS, ALICE) is first
    await manual_clock.advance(1)

    assert vending.get(ORDERS, ALICE) is None


async def test_a_crowd_costs_one_request(vending: Vending, vendor: MemoryVendor):
    vendor.gate.clear()
    crowd = [asyncio.create_task(vending.vend(ORDERS, ALICE)) for _ in range(64)]
    await asyncio.sleep(0)
    vendor.gate.set()

    given = await asyncio.gather(*crowd)

    assert len(vendor.asked) == 1
    assert all(each is given[0] for each in given)


@pytest.mark.parametrize(
    ("scope", "subject"),
    [
        (ORDERS, BOB),
        (ORDERS, replace(ALICE, principal_id=99)),
        (ORDERS, replace(ALICE, realm="other")),
        (ORDERS, replace(ALICE, table="renamed")),
        (replace(ORDERS, is_writable=False), ALICE),
        (replace(ORDERS, locations=(Location.parse("s3a://bkt/orders"),)), ALICE),
        (replace(ORDERS, locations=(Location.parse("s3://bkt/orders/x"),)), ALICE),
        (replace(ORDERS, locations=(*ORDERS.locations, Location.parse("s3://bkt/more"))), ALICE),
    ],
)
async def test_whatever_differs_gets_its_own(
    vending: Vending, vendor: MemoryVendor, scope: Scope, subject: Subject
):
    first = await vending.vend(ORDERS, ALICE)

    assert vending.get(scope, subject) is None
    second = await vending.vend(scope, subject)

    assert second is not first
    assert vendor.asked == [(ORDERS, ALICE), (scope, subject)]
    assert vending.get(ORDERS, ALICE) is first
    assert vending.get(scope, subject) is second


async def test_one_who_gives_up_takes_nothing_from_the_others(vending: Vending, vendor: MemoryVendor):
    vendor.gate.clear()
    impatient = asyncio.create_task(vending.vend(ORDERS, ALICE))
    patient = asyncio.create_task(vending.vend(ORDERS, ALICE))
    await asyncio.sleep(0)

    impatient.cancel()
    await asyncio.sleep(0)
    vendor.gate.set()

    assert (await patient).credentials
    assert impatient.cancelled()
    assert len(vendor.asked) == 1


async def test_what_everybody_has_given_up_is_kept_for_the_next(vending: Vending, vendor: MemoryVendor):
    vendor.gate.clear()
    impatient = asyncio.create_task(vending.vend(ORDERS, ALICE))
    await asyncio.sleep(0)
    impatient.cancel()
    vendor.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)

    assert vending.get(ORDERS, ALICE) is not None
    assert len(vendor.asked) == 1


@pytest.mark.parametrize(
    ("error", "pause_s"), [(StorageRefused("No", code="X", fix="Ask."), 15), (StorageUnavailable("Gone"), 1)]
)
async def test_a_failure_is_told_to_all_and_for_a_moment_not_asked_about_again(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock, error: Exception, pause_s: float
):
    vendor.error = error
    vendor.gate.clear()
    crowd = [asyncio.create_task(vending.vend(ORDERS, ALICE)) for _ in range(8)]
    await asyncio.sleep(0)
    vendor.gate.set()

    outcomes = await asyncio.gather(*crowd, return_exceptions=True)
    with pytest.raises(type(error)) as again:
        await vending.vend(ORDERS, ALICE)

    assert all(type(each) is type(error) for each in outcomes)
    assert str(again.value) == str(error)
    assert len(vendor.asked) == 1
    vendor.error = None
    await manual_clock.advance(pause_s + 0.001)
    assert (await vending.vend(ORDERS, ALICE)).credentials
    assert (await vending.vend(ORDERS, BOB)).credentials
    assert len(vendor.asked) == 3


async def test_a_vendor_that_never_answers_is_given_up(vendor: MemoryVendor, manual_clock: ManualClock):
    vending = Vending(vendor, manual_clock, timeout_s=0.01)
    vendor.gate.clear()

    with pytest.raises(StorageUnavailable):
        await vending.vend(ORDERS, ALICE)


async def test_one_who_waits_makes_nobody_else_wait(vending: Vending, vendor: MemoryVendor):
    known = await vending.vend(ORDERS, BOB)
    vendor.gate.clear()
    waiting = asyncio.create_task(vending.vend(ORDERS, ALICE))
    await asyncio.sleep(0)

    assert await vending.vend(ORDERS, BOB) is known
    assert not waiting.done()
    vendor.gate.set()
    await waiting


async def test_the_number_kept_is_bounded_and_the_used_ones_stay(
    vendor: MemoryVendor, manual_clock: ManualClock
):
    vending = Vending(vendor, manual_clock, most_kept=3)
    subjects = [replace(ALICE, principal_id=number) for number in range(5)]
    for each in subjects:
        await vending.vend(ORDERS, each)
        await vending.vend(ORDERS, subjects[0])

    assert [subject.principal_id for _, subject in vendor.asked] == [0, 1, 2, 3, 4]
    assert [vending.get(ORDERS, each) is not None for each in subjects] == [True, False, False, True, True]


async def test_what_happens_is_counted(vendor: MemoryVendor, metrics: None):
    vending = Vending(vendor, vendor.clock, kind="counted")

    await vending.vend(ORDERS, ALICE)
    for _ in range(3):
        vending.get(ORDERS, ALICE)
    vendor.error = StorageRefused("No")
    with pytest.raises(StorageRefused):
        await vending.vend(ORDERS, BOB)

    text = render().decode()
    assert 'cynosure_storage_vended_total{storage="counted"} 3.0' in text
    assert 'cynosure_storage_minted_total{outcome="ok",storage="counted"} 1.0' in text
    assert 'cynosure_storage_minted_total{outcome="refused",storage="counted"} 1.0' in text
    assert 'cynosure_storage_mint_seconds_count{storage="counted"} 1.0' in text


async def test_the_log_says_whom_credentials_were_made_for_and_not_what_they_are(
    vending: Vending, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level("INFO"):
        vended = await vending.vend(ORDERS, ALICE)
        await vending.vend(ORDERS, ALICE)

    [record] = [each for each in caplog.records if each.getMessage() == "credentials.minted"]
    told = record.cynosure_fields  # type: ignore[attr-defined]
    assert told["holder"] == ALICE.principal
    assert told["table"] == ALICE.table
    assert told["expires_ms"] == vended.expires_ms
    assert "number" not in str(told)


# --- clocks that are set ---------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_does_not_bring_credentials_back_to_life(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock
):
    first = await vending.vend(ORDERS, ALICE)

    await manual_clock.advance(HOUR_MS / 1000 * 0.4)
    manual_clock.step_wall(-2 * 3600)
    assert vending.get(ORDERS, ALICE) is first
    await manual_clock.advance(HOUR_MS / 1000 * 0.2)

    assert vending.get(ORDERS, ALICE) is None
    assert await vending.vend(ORDERS, ALICE) is not first


async def test_a_clock_that_is_set_forward_past_the_end_of_credentials_ends_them(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock
):
    first = await vending.vend(ORDERS, ALICE)
    manual_clock.step_wall(HOUR_MS / 1000)

    again = [await vending.vend(ORDERS, ALICE) for _ in range(64)]

    assert first not in again
    assert len(vendor.asked) == 2


@pytest.mark.parametrize("step_s", [-86_400.0, 86_400.0])
async def test_a_clock_that_is_set_does_not_make_a_failure_last(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock, step_s: float
):
    vendor.error = StorageUnavailable("Gone")
    with pytest.raises(StorageUnavailable):
        await vending.vend(ORDERS, ALICE)
    vendor.error = None

    manual_clock.step_wall(step_s)
    await manual_clock.advance(1.001)

    assert (await vending.vend(ORDERS, ALICE)).credentials


# --- a token service that hangs --------------------------------------------------------------------


async def fail_slowly(vending: Vending, vendor: MemoryVendor, clock: ManualClock, subject: Subject) -> None:
    """Ask for something that fails after five seconds."""
    vendor.gate.clear()
    vendor.error = StorageUnavailable("Hangs")
    asked = asyncio.create_task(vending.vend(ORDERS, subject))
    await clock.advance(5)
    vendor.gate.set()
    with pytest.raises(StorageUnavailable):
        await asked


async def test_a_service_that_kept_one_waiting_for_nothing_keeps_nobody_else_waiting(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock
):
    known = await vending.vend(ORDERS, BOB)
    others = [replace(ALICE, principal_id=number) for number in range(100, 108)]
    await fail_slowly(vending, vendor, manual_clock, ALICE)
    vendor.gate.clear()

    for each in others:
        with pytest.raises(StorageUnavailable, match="Hangs"):
            await vending.vend(ORDERS, each)

    assert len(vendor.asked) == 2
    assert await vending.vend(ORDERS, BOB) is known


async def test_one_goes_and_looks_whether_a_service_is_back(
    vending: Vending, vendor: MemoryVendor, manual_clock: ManualClock
):
    await fail_slowly(vending, vendor, manual_clock, ALICE)
    vendor.gate.clear()
    await manual_clock.advance(5.001)

    looking = asyncio.create_task(vending.vend(ORDERS, BOB))
    await asyncio.sleep(0)
    with pytest.raises(StorageUnavailable, match="Hangs"):
        await vending.vend(ORDERS, ALICE)
    vendor.error = None
    vendor.gate.set()

    assert (await looking).credentials
    assert (await vending.vend(ORDERS, ALICE)).credentials
    assert len(vendor.asked) == 3
