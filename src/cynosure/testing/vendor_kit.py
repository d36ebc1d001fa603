"""What vended credentials must and must not open: the promises of `storage.access.ports.Vendor`, as tests.

A binding is a subclass with one fixture, on a real store that enforces its own rules:

    class TestMyVendor(VendorKit):
        @pytest.fixture
        async def shop(self, …) -> Shop: …

`Shop.base` is empty before each test and the test's own; what the kit puts there it puts with `Shop.owner`. A
vendor may refuse to mint for a name that its store's rules cannot express, never widen it.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio. A maintainer must not break: no test
names a storage, and every refusal is looked for beside something that is allowed, so that credentials which
open nothing at all do not pass.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

import pytest

from cynosure.storage.access.ports import Scope, Subject, Vended, Vendor
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location

ALICE = Subject(realm="default", principal="alice", principal_id=11, catalog="main", table="a.orders")
BOB = Subject(realm="default", principal="bob", principal_id=12, catalog="main", table="a.orders")
# Each beside what a careless rule would open with it.
ODD_NAMES = {
    "with space": "with+space",
    "percent%20sequence": "percent sequence",
    "plus+and&equals=": "plus and&equals=",
    "quote'and\"double": "quote",
    "brackets[]{}": "brackets",
    "star*star": "starXstar",
    "*": "anything",
    "dollar${x}": "dollar",
    "${*}": "${x}",
    "${aws:username}": "alice",
    "$": "dollar",
    "ünïcödé-日本-🧊": "unicode",
    'end","Resource":"*': "end",
    ".hidden": "hidden",
    "...": "a",
}


class Denied(Exception):
    """The store does not allow it."""


class StoreClient(Protocol):
    """A client of the store itself, with some credentials. `Denied` when the store does not allow it."""

    async def get(self, location: Location) -> bytes: ...
    async def put(self, location: Location, data: bytes) -> None: ...
    async def delete(self, location: Location) -> None: ...
    async def upload_in_parts(self, location: Location, data: bytes) -> None: ...

    async def list(self, beside: Location, prefix: str) -> list[str]:
        """Keys that begin with these characters, in the bucket or container of a location."""
        ...


class Shop(NamedTuple):
    """What a binding supplies."""

    vendor: Vendor
    base: Location
    elsewhere: Location
    """A place in another bucket or container that the owner reaches too."""
    owner: StoreClient
    open_client: Callable[[Mapping[str, str]], StoreClient]
    """A client with the properties of a vended credential."""


class _Try(NamedTuple):
    name: str
    call: Callable[[StoreClient, Location], Awaitable[object]]
    is_write: bool


TRIES = (
    _Try("get", lambda client, place: client.get(place.child("file")), is_write=False),
    _Try("list", lambda client, place: client.list(place, prefix_of(place)), is_write=False),
    _Try("put", lambda client, place: client.put(place.child("new"), b"x"), is_write=True),
    _Try("overwrite", lambda client, place: client.put(place.child("file"), b"y"), is_write=True),
    _Try("upload", lambda client, place: client.upload_in_parts(place.child("big"), b"z"), is_write=True),
    _Try("delete", lambda client, place: client.delete(place.child("file")), is_write=True),
)


@pytest.mark.anyio
class VendorKit:
    """Tests that hold for all vendors."""

    @pytest.fixture
    def shop(self) -> Shop:
        """The one thing that a binding supplies."""
        raise LookupError("A binding of the vendor kit overrides the fixture shop")

    async def test_credentials_for_writing_open_the_whole_of_their_place(self, shop: Shop) -> None:
        place = shop.base.child("orders")
        client = await _vend(shop, place)

        await client.put(place.child("data", "deep", "file"), b"1")
        await client.upload_in_parts(place.child("big"), b"2" * 1000)

        assert await client.get(place.child("data", "deep", "file")) == b"1"
        assert await client.get(place.child("big")) == b"2" * 1000
        assert len(await client.list(place, prefix_of(place))) == 2
        assert len(await client.list(place, prefix_of(place) + "data/")) == 1
        await client.delete(place.child("big"))
        assert len(await client.list(place, prefix_of(place))) == 1

    @pytest.mark.parametrize("attempt", TRIES, ids=lambda each: each.name)
    async def test_they_open_nothing_beside_it(self, shop: Shop, attempt: _Try) -> None:
        place = shop.base.child("orders")
        beside = (
            shop.base.child("orders2"),
            shop.base.child("order"),
            shop.base.child("orders-old"),
            shop.base.child("x", "orders"),
            shop.base,
            shop.elsewhere,
        )
        for other in (place, *beside):
            await shop.owner.put(other.child("file"), b"secret")
        client = await _vend(shop, place)

        for other in beside:
            with pytest.raises(Denied):
                await attempt.call(client, other)

        await attempt.call(client, place)
        for other in beside:
            assert await shop.owner.get(other.child("file")) == b"secret"

    @pytest.mark.parametrize("attempt", TRIES, ids=lambda each: each.name)
    async def test_credentials_for_reading_change_nothing(self, shop: Shop, attempt: _Try) -> None:
        place = shop.base.child("orders")
        await shop.owner.put(place.child("file"), b"as it was")
        client = await _vend(shop, place, is_writable=False)

        if attempt.is_write:
            with pytest.raises(Denied):
                await attempt.call(client, place)
        else:
            await attempt.call(client, place)

        assert await client.get(place.child("file")) == b"as it was"
        assert await shop.owner.list(place, prefix_of(place)) == [prefix_of(place) + "file"]

    async def test_case_tells_names_apart(self, shop: Shop) -> None:
        place, other = shop.base.child("orders"), shop.base.child("Orders")
        for each in (place, other):
            await shop.owner.put(each.child("file"), b"x")
        client = await _vend(shop, place)

        assert await client.get(place.child("file")) == b"x"
        with pytest.raises(Denied):
            await client.list(other, prefix_of(other))
        with pytest.raises(Denied):
            await client.get(other.child("file"))

    async def test_a_listing_shows_only_what_is_below_it(self, shop: Shop) -> None:
        place = shop.base.child("orders")
        for name in ("orders", "orders2"):
            await shop.owner.put(shop.base.child(name, "file"), b"x")
        client = await _vend(shop, place)
        whole = prefix_of(place)

        for prefix in ("", whole.removesuffix("/"), whole[:-2], prefix_of(shop.base), whole[:-1] + "2/"):
            with pytest.raises(Denied):
                await client.list(place, prefix)

        assert await client.list(place, whole) == [whole + "file"]
        assert await client.list(place, whole + "fi") == [whole + "file"]

    async def test_several_places_are_each_opened_and_nothing_between_them(self, shop: Shop) -> None:
        data, metadata = shop.base.child("a", "data"), shop.base.child("b", "metadata")
        between = shop.base.child("a", "other")
        for place in (data, metadata, between):
            await shop.owner.put(place.child("file"), b"x")

        vended = await shop.vendor.mint(Scope((data, metadata), is_writable=True), ALICE)

        assert [each.prefix for each in vended.credentials] == [data.text, metadata.text]
        for credential, place in zip(vended.credentials, (data, metadata), strict=True):
            client = shop.open_client(credential.config)
            assert await client.get(place.child("file")) == b"x"
            assert len(await client.list(place, prefix_of(place))) == 1
            for call in (client.get(between.child("file")), client.list(between, prefix_of(between))):
                with pytest.raises(Denied):
                    await call

    @pytest.mark.parametrize(("name", "like"), ODD_NAMES.items())
    async def test_names_are_literal_or_refused(self, shop: Shop, name: str, like: str) -> None:
        place, other = shop.base.child(name), shop.base.child(like)
        for each in (place, other):
            await shop.owner.put(each.child("file"), b"x")

        try:
            client = await _vend(shop, place)
        except StorageRefused as refused:
            blamed = refused.details["location"]
            client = None
        if client is None:
            assert blamed == place.text
            return

        assert await client.get(place.child("file")) == b"x"
        assert await client.list(place, prefix_of(place)) == [prefix_of(place) + "file"]
        for call in (client.get(other.child("file")), client.list(other, prefix_of(other))):
            with pytest.raises(Denied):
                await call

    async def test_a_scope_without_a_place_opens_nothing(self, shop: Shop) -> None:
        await shop.owner.put(shop.base.child("file"), b"x")

        vended = await shop.vendor.mint(Scope((), is_writable=True), ALICE)

        assert vended.credentials == ()

    async def test_two_principals_never_share_credentials(self, shop: Shop) -> None:
        scope = Scope((shop.base,), is_writable=True)
        namesake = Subject("default", ALICE.principal, 13, ALICE.catalog, ALICE.table)

        given = [await shop.vendor.mint(scope, subject) for subject in (ALICE, BOB, namesake)]

        assert len({tuple(sorted(each.credentials[0].config.items())) for each in given}) == 3

    async def test_times_are_told_and_nothing_secret_is_shown(self, shop: Shop) -> None:
        vended = await shop.vendor.mint(Scope((shop.base,), is_writable=True), ALICE)

        assert vended.expires_ms > vended.issued_ms
        config = vended.credentials[0].config
        assert any(value == str(vended.expires_ms) for value in config.values())
        assert not any(value in repr(vended) for value in config.values() if len(value) > 15)


@pytest.mark.anyio
class ExpiryKit:
    """For a store that can be had to give credentials for a few seconds: `shop` mints such ones."""

    @pytest.fixture
    def shop(self) -> Shop:
        raise LookupError("A binding of the expiry kit overrides the fixture shop")

    async def test_credentials_end_when_they_were_said_to(self, shop: Shop) -> None:
        place = shop.base.child("orders")
        await shop.owner.put(place.child("file"), b"x")
        vended = await shop.vendor.mint(Scope((place,), is_writable=True), ALICE)
        client = shop.open_client(vended.credentials[0].config)
        assert await client.get(place.child("file")) == b"x"

        async def use_for_ever() -> None:
            while True:
                await client.get(place.child("file"))
                await asyncio.sleep(0.2)

        with pytest.raises(Denied):
            await asyncio.wait_for(use_for_ever(), 30)

        with pytest.raises(Denied):
            await client.put(place.child("file"), b"late")
        assert await shop.owner.get(place.child("file")) == b"x"


async def _vend(shop: Shop, place: Location, *, is_writable: bool = True) -> StoreClient:
    vended: Vended = await shop.vendor.mint(Scope((place,), is_writable=is_writable), ALICE)
    return shop.open_client(vended.credentials[0].config)


def prefix_of(place: Location) -> str:
    """The characters that every key below a place begins with."""
    return "".join(f"{segment}/" for segment in place.segments)
