"""Newer credentials for a table that a client is using."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.storage.access.ports import Credential, Inspected, Scope, StoreRequest, Subject, Vended
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.open_storage import Storage
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import T, make

pytestmark = pytest.mark.anyio
HOUR_MS = 3_600_000


class HourVendor:
    """Numbered credentials that live for an hour, unless there is an error to tell."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.asked = 0
        self.error: Exception | None = None

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        self.asked += 1
        if self.error is not None:
            raise self.error
        now_ms = self._clock.now_us() // 1000
        made = tuple(Credential(each.text, {"number": str(self.asked)}) for each in scope.locations)
        return Vended(made, now_ms, now_ms + HOUR_MS)


class NoSigner:
    """What can sign: here only its being there counts."""

    def inspect(self, request: StoreRequest) -> Inspected:
        raise AssertionError("nothing is signed here")


class World(NamedTuple):
    catalog: OpenCatalog
    vendor: HourVendor
    clock: ManualClock

    async def load(self, catalog: OpenCatalog | None = None) -> str | None:
        """The number of the credentials that are given."""
        vended = await load_credentials(catalog or self.catalog, ROOT, T)
        return None if vended is None else vended.credentials[0].config["number"]

    def signing(self) -> OpenCatalog:
        """The same catalog on a storage that can sign as well."""
        plain, storage = self.catalog, self.catalog.storage
        both = Storage(storage.files, vending=storage.vending, signer=NoSigner())
        return OpenCatalog(plain.realm, plain.entity, plain.shared, both)


@pytest.fixture
async def world(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[World]:
    vendor = HourVendor(manual_clock)
    async with open_directory_in(tmp_path, clock=manual_clock) as directory:
        plain = await make_catalog(directory, tmp_path)
        await create_namespace(plain, ROOT, ("ns",), {})
        await make(plain)
        storage = Storage(plain.files, vending=Vending(vendor, manual_clock))
        yield World(OpenCatalog(plain.realm, plain.entity, plain.shared, storage), vendor, manual_clock)


async def test_a_client_gets_newer_ones_when_half_of_their_life_is_over(world: World) -> None:
    """I58."""
    assert [await world.load(), await world.load()] == ["1", "1"]
    await world.clock.advance(29 * 60)
    assert await world.load() == "1"

    await world.clock.advance(2 * 60)

    assert [await world.load(), await world.load()] == ["2", "2"]


async def test_while_the_token_service_is_away_those_at_hand_are_given_and_then_an_error(
    world: World,
) -> None:
    """Whoever still has good ones hears that it should come again, not that there are none."""
    assert await world.load() == "1"
    world.vendor.error = StorageUnavailable("Away")

    await world.clock.advance(29 * 60)
    assert await world.load() == "1"
    await world.clock.advance(2 * 60)
    for catalog in (world.catalog, world.signing()):
        with pytest.raises(StorageUnavailable):
            await world.load(catalog)

    world.vendor.error = None
    await world.clock.advance(2)
    assert await world.load() == "3"


async def test_a_token_service_that_refuses_is_an_error_where_nothing_is_signed_instead(world: World) -> None:
    world.vendor.error = StorageRefused("No")

    with pytest.raises(StorageRefused):
        await world.load()
    assert await world.load(world.signing()) is None


async def test_a_storage_that_gives_none_says_so(world: World) -> None:
    plain = world.catalog
    storage = Storage(plain.files)

    assert await world.load(OpenCatalog(plain.realm, plain.entity, plain.shared, storage)) is None
