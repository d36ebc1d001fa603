"""Realms come to be in three steps; whoever dies, races or sweeps in between, they are whole or absent."""

import asyncio
from datetime import timedelta
from random import Random
from typing import cast

import pytest

from cynosure.common.errors import AlreadyExists, BadInput, Conflict
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import CommitLimits, Committer, Counters, Prepared, Request, View
from cynosure.persistence.heads import Heads
from cynosure.persistence.index import IndexLimits, encode_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import (
    CATALOG_REFERENCES,
    INDEXES,
    REALM_REFERENCES,
    REALMS,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.scopes import (
    REALM_ENTRY,
    RealmEntry,
    adopt_references,
    clear_unlisted,
    create_realm,
    find_realm,
    list_catalog_ids,
    list_realms,
    mend_catalogs,
    mend_realms,
    prepare_references,
    sweep_unlisted,
    unlist_realm,
)
from cynosure.persistence.spi import REALM_SCOPE, CatalogId, ObjId, RealmId, RefKey
from cynosure.persistence.store import NewObject, Store
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import CountingIds, RuledBackend

pytestmark = pytest.mark.anyio

GRACE = timedelta(hours=3)
ACME = RealmId("acme")
KEYS = [realm_reference(ACME, name) for name in REALM_REFERENCES]


class World:
    """A store with its list of realms, and as many processes on it as a test asks for."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.backend = RuledBackend()
        self.ids = CountingIds()

    def realms(self) -> Committer:
        """The list of realms, as one process has it."""
        return self.committer(REALMS)

    def catalogs(self) -> Committer:
        """The list of catalogs of the realm, as one process has it."""
        return self.committer(realm_reference(ACME, "catalogs"))

    def committer(self, key: RefKey) -> Committer:
        cache = ObjectCache(1 << 20, self.clock)
        store = Store(self.backend, cache, self.clock, Random(7), realm=key.realm, catalog=REALM_SCOPE)
        return Committer(
            key,
            store=store,
            heads=Heads(self.backend, self.clock),
            ids=self.ids,
            clock=self.clock,
            rng=Random(7),
            limits=CommitLimits(index=IndexLimits()),
            counters=Counters(),
            indexes=INDEXES[key.name],
        )

    async def create(self, realm: RealmId = ACME) -> RealmEntry:
        return await create_realm(
            self.realms(), realm, backend=self.backend, ids=self.ids, clock=self.clock, principal="root"
        )

    async def is_listed(self, key: RefKey) -> bool:
        return key.realm in await list_realms(self.realms())

    async def sweep(self) -> list[RefKey]:
        return await sweep_unlisted(self.backend, self.is_listed, clock=self.clock, grace=GRACE)

    async def has_references(self) -> bool:
        return None not in await self.backend.fetch_refs(KEYS)

    async def list_only(self) -> None:
        """What a creator has done that died after its second step."""

        async def prepare(view: View) -> Prepared[None]:
            new = NewObject(REALM_ENTRY, self.ids.next(), RealmEntry(name=ACME, created_us=1))
            return Prepared(None, {"names": {encode_key(ACME): ObjRef(new.id, "realm").pack()}}, [new])

        await self.realms().commit(Request(prepare, "root", "create-realm"))


@pytest.fixture
async def world() -> World:
    world = World()
    await world.backend.setup()
    await ensure_reference(world.backend, REALMS, world.clock)
    return world


async def test_a_new_realm_is_listed_and_has_its_references(world: World) -> None:
    """I19."""
    entry = await world.create()

    assert (entry.name, entry.created_us) == (ACME, world.clock.now_us())
    assert await list_realms(world.realms()) == [ACME]
    assert await world.has_references()
    # Nobody's earlier look at them counts any more.
    assert {ref.generation for ref in await world.backend.list_refs(ACME)} == {1}


async def test_a_name_is_given_once(world: World) -> None:
    await world.create()

    with pytest.raises(AlreadyExists) as refused:
        await world.create()

    assert refused.value.details == {"realm": ACME}
    assert await list_realms(world.realms()) == [ACME]


async def test_of_two_who_create_the_same_realm_one_succeeds_and_it_is_whole(world: World) -> None:
    racing = asyncio.gather(*(world.create() for _ in range(4)), return_exceptions=True)
    while not racing.done():
        await world.clock.advance(0.1)  # Losers of a swap pause.
    outcomes = await racing

    assert sum(isinstance(outcome, RealmEntry) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 3
    assert await world.has_references()


@pytest.mark.parametrize(
    "name", ["", "_system", "-x", ".x", "a/b", "a b", "a\0b", "a\x1fb", "ü", "a" * 129, "a\n", "../x"]
)
async def test_a_name_that_a_path_or_header_could_not_carry_is_refused(world: World, name: str) -> None:
    """I2."""
    with pytest.raises(BadInput) as refused:
        await world.create(RealmId(name))

    assert refused.value.field == "realm"
    assert [ref.key for ref in await world.backend.list_refs()] == [REALMS]


async def test_more_realms_than_fit_one_scan_are_all_listed_in_order(world: World) -> None:
    names = [RealmId(f"r{number:05}") for number in range(2_300)]

    async def prepare(view: View) -> Prepared[None]:
        value = ObjRef(ObjId(1), "realm").pack()
        return Prepared(None, {"names": {encode_key(name): value for name in names}})

    await world.realms().commit(Request(prepare, "root", "test"))

    assert await list_realms(world.realms()) == names


# --- the repairer ----------------------------------------------------------------------------------


async def test_references_of_a_creator_that_died_are_swept_after_the_grace_period(world: World) -> None:
    """I19."""
    await prepare_references(world.backend, KEYS, world.clock)

    assert await world.sweep() == []
    await world.clock.advance(GRACE.total_seconds() + 1)
    assert sorted(await world.sweep()) == sorted(KEYS)

    await world.create()
    assert await world.has_references()


async def test_listed_realms_and_the_stores_own_references_are_never_swept(world: World) -> None:
    await world.create()
    await world.clock.advance(10 * GRACE.total_seconds())

    assert await world.sweep() == []
    assert await world.has_references()


async def test_a_repairer_that_looked_at_the_list_too_early_deletes_nothing(world: World) -> None:
    await prepare_references(world.backend, KEYS, world.clock)
    await world.clock.advance(GRACE.total_seconds() + 1)
    created: list[RealmEntry] = []

    async def listed_a_moment_ago(key: RefKey) -> bool:
        # The list is read, and before the repairer goes on the realm is created: on the old references.
        if not created:
            created.append(await world.create())
        return False

    swept = await sweep_unlisted(world.backend, listed_a_moment_ago, clock=world.clock, grace=GRACE)

    assert swept == []
    assert await world.has_references()


async def test_what_a_repairer_deleted_in_between_is_made_again(world: World) -> None:
    await prepare_references(world.backend, KEYS, world.clock)
    before = await world.backend.fetch_refs(KEYS)
    for ref in before:
        assert ref is not None
        assert await world.backend.delete_ref(ref)

    await adopt_references(world.backend, KEYS, world.clock)

    assert await world.has_references()
    # A second repairer that read them before the first one deleted them comes too late as well.
    for ref in before:
        assert ref is not None
        assert not await world.backend.delete_ref(ref)


async def test_adoption_tries_until_it_is_certain(world: World) -> None:
    await prepare_references(world.backend, KEYS, world.clock)

    async def moved_meanwhile(_expected, _updated, _apply) -> bool:
        world.backend.rule = None
        return False

    world.backend.rule = moved_meanwhile
    await adopt_references(world.backend, KEYS, world.clock)

    assert {ref.generation for ref in await world.backend.list_refs(ACME)} == {1}


async def test_a_listed_realm_without_references_is_mended(world: World) -> None:
    """I19: the creator died between listing and adopting, while a repairer deleted."""
    await world.list_only()
    assert not await world.has_references()

    assert sorted(await mend_realms(world.realms(), world.backend, world.clock)) == sorted(KEYS)
    assert await world.has_references()
    assert await mend_realms(world.realms(), world.backend, world.clock) == []


async def test_listed_catalogs_get_the_references_they_lack(world: World) -> None:
    """I19: half-made, half-deleted, or made by a version that had fewer references."""
    await world.create()
    ids = [CatalogId(f"{number:04}") for number in range(1_200)]

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"ids": {encode_key(catalog): b"name" for catalog in ids}})

    await world.catalogs().commit(Request(prepare, "root", "test"))
    main = catalog_reference(ACME, ids[7], "main")
    await ensure_reference(world.backend, main, world.clock)

    made = await mend_catalogs(world.catalogs(), world.backend, world.clock)

    assert await list_catalog_ids(world.catalogs()) == ids
    wanted = {catalog_reference(ACME, catalog, name) for catalog in ids for name in CATALOG_REFERENCES}
    assert set(made) == wanted - {main}
    assert {ref.key for ref in await world.backend.list_refs(ACME)} >= wanted
    assert await mend_catalogs(world.catalogs(), world.backend, world.clock) == []


# --- a name that comes back ------------------------------------------------------------------------


async def delete(world: World) -> None:
    realms = world.realms()
    seen = await find_realm((await realms.read()).state, ACME)
    assert seen is not None
    await unlist_realm(realms, seen, principal="root")
    assert await clear_unlisted(realms, ACME, world.backend)


async def write(world: World) -> None:
    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"ids": {encode_key("1"): b"old"}})

    await world.catalogs().commit(Request(prepare, "root", "test"))


async def test_every_realm_of_a_name_has_greater_generations_than_the_one_before(world: World) -> None:
    """Also when its references were raised by many collections meanwhile, and whatever the clocks say."""
    await world.create()
    for ref in await world.backend.list_refs(ACME):
        assert await world.backend.swap_ref(ref, ref._replace(generation=ref.generation + 100_000))
    before = max(ref.generation for ref in await world.backend.list_refs(ACME))

    await delete(world)
    assert await world.backend.list_refs(ACME) == []
    await world.create()

    assert min(ref.generation for ref in await world.backend.list_refs(ACME)) > before


async def test_references_that_were_left_behind_are_not_taken_over(world: World) -> None:
    """Whoever deleted the old realm died before it deleted its references."""
    await world.create()
    await write(world)
    seen = await find_realm((await world.realms().read()).state, ACME)
    assert seen is not None
    await unlist_realm(world.realms(), seen, principal="root")

    await world.create()

    assert {ref.head for ref in await world.backend.list_refs(ACME)} == {0}
    assert await list_catalog_ids(world.catalogs()) == []


async def test_whoever_clears_with_an_old_look_at_the_list_deletes_nothing(world: World) -> None:
    await prepare_references(world.backend, KEYS, world.clock)

    class Late:
        """Reads the list, and is stopped until the realm is created and in use."""

        async def read(self, *, is_fresh: bool = False) -> object:
            base = await world.realms().read(is_fresh=is_fresh)
            if ACME not in await list_realms(world.realms()):
                await world.create()
                await write(world)
            return base

    assert not await clear_unlisted(cast(Committer, Late()), ACME, world.backend)

    assert await world.has_references()
    assert await list_catalog_ids(world.catalogs()) == ["1"]


async def test_a_listed_realm_is_not_cleared(world: World) -> None:
    await world.create()
    assert not await clear_unlisted(world.realms(), ACME, world.backend)
    assert await world.has_references()


async def test_a_realm_that_was_changed_meanwhile_is_not_unlisted(world: World) -> None:
    await world.create()
    seen = await find_realm((await world.realms().read()).state, ACME)
    assert seen is not None
    await unlist_realm(world.realms(), seen, principal="root")
    await world.create()

    with pytest.raises(Conflict):
        await unlist_realm(world.realms(), seen, principal="root")
    assert await list_realms(world.realms()) == [ACME]
