"""Catalogs as things: created, listed, changed; their names and their locations."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.auth.caller import operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.errors import CatalogExists, InvalidName, LocationRefused, NoSuchCatalog
from cynosure.catalog.listed import MAX_LOCATIONS, outermost
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import BadInput, Conflict
from cynosure.common.secrets import Secret
from cynosure.persistence.listing import Paging
from cynosure.persistence.references import CATALOG_REFERENCES, DEFAULT_REALM, REALMS, catalog_reference
from cynosure.persistence.scopes import create_realm
from cynosure.persistence.spi import RealmId
from cynosure.storage.config import FileStorage, S3Keys, S3Storage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT

pytestmark = pytest.mark.anyio

KEYS = S3Keys("AK", Secret("hunter2"))


def on_s3(name: str, *allowed: str, base: str = "") -> NewCatalog:
    storage = S3Storage(allowed_locations=allowed or (f"s3://{name}/",))
    return NewCatalog(
        name=name, base_location=base or storage.allowed_locations[0], storage=storage, storage_keys=KEYS
    )


async def test_a_new_catalog_is_found_listed_and_has_its_references(directory: Directory) -> None:
    created = await create_catalog(directory, ROOT, on_s3("lake"))

    opened = await directory.open(DEFAULT_REALM, "lake")
    assert opened.entity == created == await load_catalog(directory, ROOT, "lake")
    assert (await list_catalogs(directory, ROOT)).catalogs == [created]
    backend = directory.shared.persistence.backend
    keys = [catalog_reference(DEFAULT_REALM, created.id, name) for name in CATALOG_REFERENCES]
    assert None not in await backend.fetch_refs(keys)
    assert (await opened.read()).commit_id == 0


@pytest.mark.parametrize("is_round", [False, True], ids=["", "ending with a batch"])
async def test_catalogs_are_listed_by_name_in_pages_and_all_of_them(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, is_round: bool
) -> None:
    monkeypatch.setattr("cynosure.catalog.operations.list_catalogs._BATCH", 6)
    names = [f"c{number:04}" for number in range(12 if is_round else 20)]
    for name in reversed(names):
        await create_catalog(directory, ROOT, on_s3(name))

    assert [entity.name for entity in (await list_catalogs(directory, ROOT)).catalogs] == names
    paged: list[str] = []
    token: str | None = ""
    while token is not None:
        page = await list_catalogs(directory, ROOT, Paging(token, 8))
        paged += [entity.name for entity in page.catalogs]
        token = page.next_token
    assert paged == names


async def test_of_several_who_create_the_same_name_one_succeeds(directory: Directory) -> None:
    wanted = [on_s3("lake", f"s3://bucket-{number}/") for number in range(8)]

    outcomes = await asyncio.gather(
        *(create_catalog(directory, ROOT, each) for each in wanted), return_exceptions=True
    )

    assert sum(isinstance(each, CatalogEntity) for each in outcomes) == 1
    assert sum(isinstance(each, CatalogExists) for each in outcomes) == 7
    assert len((await list_catalogs(directory, ROOT)).catalogs) == 1


async def test_names_that_paths_mistake_are_names(directory: Directory) -> None:
    names = ["a/b", "a.b", "köln ☃", "config", "v1", "%2F", "a b", "x" * 256, "'; drop"]
    for number, name in enumerate(names):
        await create_catalog(directory, ROOT, on_s3(name, f"s3://bucket-{number}/"))

    for name in names:
        assert (await directory.open(DEFAULT_REALM, name)).entity.name == name


@pytest.mark.parametrize(
    "name",
    ["", "x" * 257, "a\x1fb", "a\nb", "a\x7f", "a\x85b", ".", "..", "SYSTEM$x", "system$X", "  System$"],
)
async def test_what_cannot_be_a_name_is_refused_and_nothing_is_left(directory: Directory, name: str) -> None:
    before = await directory.shared.persistence.backend.list_refs()

    with pytest.raises(InvalidName) as refused:
        await create_catalog(directory, ROOT, on_s3(name, "s3://bucket/"))

    assert refused.value.field == "name"
    assert (await list_catalogs(directory, ROOT)).catalogs == []
    assert await directory.shared.persistence.backend.list_refs() == before


async def test_a_name_that_is_not_there_is_told(directory: Directory) -> None:
    for name in ("", "lake", "x" * 10_000):
        with pytest.raises(NoSuchCatalog):
            await directory.open(DEFAULT_REALM, name)
        with pytest.raises(NoSuchCatalog):
            await load_catalog(directory, ROOT, name)


# --- locations -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    ["s3://b/a", "s3a://b/a/", "s3://b", "s3://b/a/deep/er"],
    ids=["equal", "equal in another spelling", "above", "below"],
)
async def test_a_location_that_overlaps_with_that_of_another_catalog_is_refused(
    directory: Directory, location: str
) -> None:
    await create_catalog(directory, ROOT, on_s3("first", "s3://b/a"))

    with pytest.raises(LocationRefused):
        await create_catalog(directory, ROOT, on_s3("second", "s3://elsewhere/", location))

    assert [entity.name for entity in (await list_catalogs(directory, ROOT)).catalogs] == ["first"]


@pytest.mark.parametrize("location", ["s3://b/ab", "s3://b/c", "s3://a/a", "s3://b/A", "s3://b/%61"])
async def test_a_neighbour_is_no_overlap(directory: Directory, location: str) -> None:
    await create_catalog(directory, ROOT, on_s3("first", "s3://b/a"))

    await create_catalog(directory, ROOT, on_s3("second", location))


async def test_of_two_catalogs_that_race_for_a_location_one_gets_it(directory: Directory) -> None:
    wanted = [on_s3(f"c{number}", "s3://b/" + "/".join("abcdefgh"[: number + 1])) for number in range(8)]

    outcomes = await asyncio.gather(
        *(create_catalog(directory, ROOT, each) for each in wanted), return_exceptions=True
    )

    assert sum(isinstance(each, CatalogEntity) for each in outcomes) == 1
    assert sum(isinstance(each, LocationRefused) for each in outcomes) == 7


async def test_the_base_location_is_inside_an_allowed_one(directory: Directory) -> None:
    with pytest.raises(LocationRefused):
        await create_catalog(directory, ROOT, on_s3("lake", "s3://b/a", base="s3://b/ab"))

    created = await create_catalog(directory, ROOT, on_s3("lake", "s3://b/a", base="s3://b/a/base"))
    assert created.base_location == "s3://b/a/base"


async def test_a_catalog_has_a_bounded_number_of_locations(directory: Directory) -> None:
    many = [f"s3://b/{number}" for number in range(MAX_LOCATIONS + 1)]

    with pytest.raises(BadInput):
        await create_catalog(directory, ROOT, on_s3("lake", *many))
    await create_catalog(directory, ROOT, on_s3("lake", *many[:-1]))

    # However many locations a catalog has below a place, they do not hide those of another.
    await create_catalog(directory, ROOT, on_s3("other", "s3://b/zzz"))
    update = CatalogUpdate(storage=S3Storage(allowed_locations=("s3://b",)), storage_keys=KEYS)
    with pytest.raises(LocationRefused):
        await update_catalog(directory, ROOT, "lake", update)


async def test_local_files_are_served_below_the_roots_of_the_server_only(
    directory: Directory, tmp_path: Path
) -> None:
    def on_files(location: str) -> NewCatalog:
        return NewCatalog(name="lake", base_location=location, storage=FileStorage((location,)))

    for location in ("file:///etc", f"file://{tmp_path}", f"file://{tmp_path}/filesystem"):
        with pytest.raises(BadInput, match="does not serve files"):
            await create_catalog(directory, ROOT, on_files(location))
    await create_catalog(directory, ROOT, on_files(f"file://{tmp_path}/files/lake"))


_PATHS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: f"s3://b/{'/'.join(parts)}"),
    min_size=1,
    max_size=8,
)


@given(paths=_PATHS)
def test_the_outermost_locations_cover_all_and_do_not_overlap(paths: list[str]) -> None:
    storage = S3Storage(allowed_locations=tuple(paths))
    entity = CatalogEntity(
        id="1", name="c", base_location=paths[0], storage=storage, created_us=1, updated_us=1
    )

    found = outermost(entity)

    assert all(any(Location.parse(path).is_within(each) for each in found) for path in paths)
    assert not any(a != b and a.overlaps(b) for a in found for b in found)
    assert {each.text for each in found} <= set(paths)


# --- changes ---------------------------------------------------------------------------------------


async def test_an_update_changes_what_it_names_and_counts_versions(directory: Directory) -> None:
    wanted = msgspec.structs.replace(on_s3("lake", "s3://b/a"), properties={"a": "1", "b": "2"})
    created = await create_catalog(directory, ROOT, wanted)

    update = CatalogUpdate(set_properties={"b": "3", "c": "4"}, remove_properties=("a",))
    changed = await update_catalog(directory, ROOT, "lake", update)

    assert changed.properties == {"b": "3", "c": "4"}
    assert (changed.id, changed.version, changed.storage) == (created.id, 2, created.storage)
    assert (await directory.open(DEFAULT_REALM, "lake")).entity == changed


async def test_an_update_of_a_version_that_is_passed_is_refused(directory: Directory) -> None:
    await create_catalog(directory, ROOT, on_s3("lake"))
    await update_catalog(directory, ROOT, "lake", CatalogUpdate(set_properties={"a": "1"}, version=1))

    with pytest.raises(Conflict):
        await update_catalog(directory, ROOT, "lake", CatalogUpdate(set_properties={"a": "2"}, version=1))
    assert (await load_catalog(directory, ROOT, "lake")).properties == {"a": "1"}


async def test_a_location_that_is_taken_from_a_catalog_is_not_for_another_one(directory: Directory) -> None:
    await create_catalog(directory, ROOT, on_s3("lake", "s3://b/a"))

    def with_locations(*allowed: str) -> CatalogUpdate:
        storage = S3Storage(allowed_locations=allowed)
        return CatalogUpdate(base_location="s3://c/base", storage=storage, storage_keys=KEYS)

    await update_catalog(directory, ROOT, "lake", with_locations("s3://b/a", "s3://c"))
    await update_catalog(directory, ROOT, "lake", with_locations("s3://c", "s3://b/d"))

    for taken in ("s3://b/a", "s3://b/a/x", "s3://b", "s3://c/y"):
        with pytest.raises(LocationRefused):
            await create_catalog(directory, ROOT, on_s3("other", taken))
    await create_catalog(directory, ROOT, on_s3("other", "s3://b/e"))


async def test_an_update_cannot_take_the_location_of_another_catalog(directory: Directory) -> None:
    await create_catalog(directory, ROOT, on_s3("first", "s3://b/a"))
    await create_catalog(directory, ROOT, on_s3("second", "s3://c"))

    update = CatalogUpdate(storage=S3Storage(allowed_locations=("s3://c", "s3://b")), storage_keys=KEYS)
    with pytest.raises(LocationRefused):
        await update_catalog(directory, ROOT, "second", update)
    assert (await load_catalog(directory, ROOT, "second")).version == 1


# --- secrets ---------------------------------------------------------------------------------------


async def test_keys_are_stored_sealed_for_their_catalog_only(directory: Directory) -> None:
    first = await create_catalog(directory, ROOT, on_s3("first"))
    second = await create_catalog(directory, ROOT, on_s3("second"))

    persistence = directory.shared.persistence
    rows = await persistence.backend.scan(after=None, limit=10_000)
    blobs = [row.blob for row in await persistence.backend.fetch([head.key for head in rows]) if row]
    assert not any(b"hunter2" in blob for blob in blobs)
    assert first.storage.sealed_keys != second.storage.sealed_keys  # type: ignore[union-attr]
    assert "hunter2" not in repr(first)
    directory.storages.get(first.storage, (DEFAULT_REALM, first.id))
    with pytest.raises(Exception, match="does not open"):
        directory.storages.get(first.storage, (DEFAULT_REALM, second.id))


async def test_a_catalog_on_s3_without_keys_reaches_no_file(directory: Directory) -> None:
    created = await create_catalog(directory, ROOT, msgspec.structs.replace(on_s3("lake"), storage_keys=None))

    files = directory.storages.get(created.storage, (DEFAULT_REALM, created.id)).files

    with pytest.raises(StorageRefused, match="no access key"):
        await files.read(Location.parse("s3://lake/file"))


async def test_another_realm_has_its_own_catalogs(directory: Directory) -> None:
    persistence = directory.shared.persistence
    acme = RealmId("acme")
    await create_realm(
        persistence.committer(REALMS),
        acme,
        backend=persistence.backend,
        ids=persistence.ids,
        clock=persistence.clock,
        principal="root",
    )
    await create_catalog(directory, ROOT, on_s3("lake"))

    created = await create_catalog(directory, operator_caller("root", acme), on_s3("lake"))

    assert (await directory.open(acme, "lake")).entity == created
    assert (await directory.open(DEFAULT_REALM, "lake")).entity != created
