"""Pins: claims on a commit that run out."""

import pytest
from msgspec import Raw, msgpack
from msgspec.structs import replace

from cynosure.common.errors import LeaseLost
from cynosure.persistence.gc.pins import PIN, Pin, drop_pin, renew_pin
from cynosure.persistence.objects import Unknown
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def small() -> SmallStore:
    small = SmallStore(ManualClock())
    await small.setup()
    return small


async def test_renewing_keeps_what_a_newer_version_wrote(small: SmallStore) -> None:
    """I20."""
    store, now_us = small.store(), small.clock.now_us()
    newer = replace(
        Pin(commit=ObjId(5), owner="export", until_us=now_us + 1_000_000),
        unknown=Unknown(version=9, fields={"reason": Raw(msgpack.encode("audit"))}),
    )
    placed = await store.insert(PIN, ObjId(9), newer)
    assert placed is not None

    renewed = await renew_pin(store, placed, life_s=60, clock=small.clock)

    stored = await store.fetch(PIN, ObjId(9))
    assert stored is not None
    assert stored.value.unknown == newer.unknown
    assert stored.value.until_us == now_us + 60_000_000
    assert renewed.token == stored.token


async def test_a_pin_that_ran_out_or_was_taken_away_cannot_be_renewed(small: SmallStore) -> None:
    """I16."""
    store, clock = small.store(), small.clock
    assert isinstance(clock, ManualClock)
    late, gone = [
        await store.insert(
            PIN, ObjId(each), Pin(commit=ObjId(5), owner="x", until_us=clock.now_us() + 1_000_000)
        )
        for each in (1, 2)
    ]
    assert late is not None
    assert gone is not None
    await drop_pin(store, gone)
    with pytest.raises(LeaseLost):
        await renew_pin(store, gone, life_s=60, clock=clock)

    await clock.advance(1)

    with pytest.raises(LeaseLost):
        await renew_pin(store, late, life_s=60, clock=clock)
