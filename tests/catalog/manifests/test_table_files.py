"""Manifests are read once, kept within bounds, and never from outside of what their table holds (I85)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.settings import CatalogSettings
from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.snapshots import Snapshot
from cynosure.storage.errors import FileMissing
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.manifests.writing import WatchedFiles, Writer, data_file, load, open_files, watch
from tests.catalog.tables import T, make

pytestmark = pytest.mark.anyio


class World:
    def __init__(self, catalog: OpenCatalog, files: TableFiles, writer: Writer) -> None:
        self.catalog = catalog
        self.files = files
        self.writer = writer
        self.watched: WatchedFiles = watch(catalog)

    async def manifest(self, number: int = 0, *, files: int = 3) -> ManifestFile:
        paths = [f"{self.writer.folder}/f{number}-{at}.parquet" for at in range(files)]
        return await self.writer.manifest(f"m{number}", [data_file(path) for path in paths])

    async def read(self, listed: ManifestFile) -> bytes:
        return await self.catalog.files.read(Location.parse(listed.path))

    def snapshot(self, path: str) -> Snapshot:
        return Snapshot(1, 0, manifest_list=path)


@pytest.fixture
async def world(catalog: OpenCatalog) -> World:
    await make(catalog)
    return World(catalog, await open_files(catalog), Writer(catalog, await load(catalog)))


@pytest.fixture
async def tight(tmp_path: Path) -> AsyncIterator[World]:
    """With little memory, and few reads at once."""
    settings = CatalogSettings(manifests_bytes=60_000, manifest_reads=3, manifest_reads_bytes=20_000)
    async with open_directory_in(tmp_path, catalog_settings=settings) as directory:
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, ("ns",), {})
        await make(catalog)
        yield World(catalog, await open_files(catalog), Writer(catalog, await load(catalog)))


async def test_a_snapshot_s_manifests_are_read_and_remembered(world: World):
    listed = [await world.manifest(number) for number in range(3)]
    path = await world.writer.list("l", listed)

    first = await world.files.list_manifests(world.snapshot(path))
    manifests = await world.files.load_all(first)
    again = TableFiles(world.catalog, await load(world.catalog))

    assert first == tuple(listed)
    assert [manifest.paths[0] for manifest in manifests] == [
        f"{world.writer.folder}/f{number}-0.parquet" for number in range(3)
    ]
    assert await again.list_manifests(world.snapshot(path)) is first
    assert [id(one) for one in await again.load_all(first)] == [id(one) for one in manifests]
    assert sorted(world.watched.read_paths) == sorted([path, *(one.path for one in listed)])


async def test_memory_stays_within_its_bound(tight: World):
    recent = tight.catalog.shared.manifests
    listed = [await tight.manifest(number, files=20) for number in range(30)]

    for one in listed:
        assert len(await tight.files.load(one)) == 20
        assert recent.weight_bytes <= 60_000
    tight.watched.read_paths.clear()
    await tight.files.load(listed[-1])
    assert tight.watched.read_paths == []
    await tight.files.load(listed[0])
    assert tight.watched.read_paths == [listed[0].path]


async def test_what_is_larger_than_all_memory_is_read_and_not_kept(tight: World):
    small, large = await tight.manifest(1), await tight.manifest(2, files=3_000)
    await tight.files.load(small)

    assert len(await tight.files.load(large)) == 3_000
    tight.watched.read_paths.clear()
    await tight.files.load(small)
    assert tight.watched.read_paths == []


async def test_only_so_many_files_are_read_at_once(tight: World):
    listed = [await tight.manifest(number) for number in range(20)]

    found = await tight.files.load_all(listed)

    assert [one.path for one in found] == [one.path for one in listed]
    assert tight.watched.most == 3


async def test_bytes_under_way_are_bounded_and_a_large_file_has_its_turn(tight: World):
    names = [f"{tight.writer.folder}/{at}.parquet" for at in range(150)]
    # Uncompressed, each takes more than half of the room.
    large = [
        await tight.writer.manifest(f"l{number}", [data_file(name) for name in names], codec="null")
        for number in range(3)
    ]
    assert all(one.length > 10_000 for one in large)

    await tight.files.load_all(large)

    assert tight.watched.most == 1


async def test_readers_of_one_file_share_one_read(world: World):
    listed = await world.manifest()
    world.watched.may_read.clear()
    readers = [asyncio.create_task(world.files.load(listed)) for _ in range(5)]
    await asyncio.sleep(0)
    readers[0].cancel()
    await asyncio.sleep(0)
    world.watched.may_read.set()

    found = await asyncio.gather(*readers, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert len({id(one) for one in found[1:]}) == 1
    assert world.watched.read_paths == [listed.path]


async def test_a_cancelled_wait_for_a_turn_leaves_room_for_others(tight: World):
    listed = [await tight.manifest(number) for number in range(8)]
    tight.watched.may_read.clear()
    given_up = asyncio.create_task(tight.files.load_all(listed))
    await tight.watched.is_full.wait()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    tight.watched.may_read.set()

    assert len(await tight.files.load_all(listed)) == 8


async def test_a_failed_read_is_tried_again_by_the_next_reader(world: World):
    listed = await world.manifest()
    data = await world.read(listed)
    await world.catalog.files.delete(Location.parse(listed.path))
    with pytest.raises(FileMissing) as missing:
        await world.files.load(listed)
    assert missing.value.details["location"] == listed.path

    await world.writer.put(listed.path, data)
    assert len(await world.files.load(listed)) == 3


OTHERS = [
    "file:///etc/m.avro",
    "s3://elsewhere/m.avro",
    "{base}/ns/other/metadata/m.avro",
    "{table}-2/metadata/m.avro",
]


@pytest.mark.parametrize("path", OTHERS)
async def test_a_path_outside_of_the_table_is_refused_unread(world: World, path: str):
    table = world.writer.folder.removesuffix("/metadata")
    path = path.format(base=world.catalog.entity.base_location, table=table)
    listed = replace(await world.manifest(), path=path)

    for refused in (
        world.files.load(listed),
        world.files.load_all([listed]),
        world.files.read_list(path),
        world.files.list_manifests(world.snapshot(path)),
        world.files.list_manifests(Snapshot(1, 0, manifests=(path,))),
    ):
        with pytest.raises(LocationRefused) as error:
            await refused
        assert error.value.details["location"] == path
    assert world.watched.read_paths == []


@pytest.mark.parametrize("part", ["..", "%2e%2e", "."])
async def test_a_path_with_dots_is_refused_unread(world: World, part: str):
    listed = replace(await world.manifest(), path=f"{world.writer.folder}/{part}/m0.avro")

    with pytest.raises(BadInput) as error:
        await world.files.load(listed)

    assert error.value.field == "manifest_path"
    assert world.watched.read_paths == []


async def test_what_another_table_has_read_is_not_given_from_memory(world: World):
    other = Identifier(("ns",), "other")
    await make(world.catalog, other)
    theirs = await open_files(world.catalog, other)
    listed = await Writer(world.catalog, await load(world.catalog, other)).manifest("m", [data_file("x")])
    await theirs.load(listed)

    with pytest.raises(LocationRefused):
        await world.files.load(listed)


async def test_a_made_up_line_does_not_change_what_others_are_told(world: World):
    listed = await world.manifest()

    forged = await world.files.load(replace(listed, sequence_number=99, added_snapshot_id=7))
    true = await world.files.load(listed)

    assert forged.sequence_numbers[0] == 99
    assert true.sequence_numbers[0] == listed.sequence_number


@pytest.mark.parametrize("damage", ["truncated", "longer", "foreign", "empty", "inside"])
async def test_a_damaged_manifest_is_refused_by_name(world: World, damage: str):
    listed = await world.manifest()
    data = await world.read(listed)
    damaged = {
        "truncated": data[:-20],
        "longer": data + b"\0",
        "foreign": b"PAR1".ljust(len(data), b"\0"),
        "empty": b"",
        "inside": data[:-40] + b"\xff" * 8 + data[-32:],
    }[damage]
    await world.writer.put(listed.path, damaged)

    with pytest.raises(InvalidManifest) as error:
        await world.files.load(listed)
    assert error.value.field == listed.path


async def test_a_manifest_that_was_cut_off_is_refused_whatever_length_its_list_tells(world: World):
    listed = await world.manifest()
    data = await world.read(listed)
    await world.writer.put(listed.path, data[:-20])

    with pytest.raises(InvalidManifest):
        await world.files.load(replace(listed, length=len(data) - 20))


async def test_a_manifest_of_another_length_than_listed_is_refused(world: World):
    listed = await world.manifest()

    for length in (listed.length - 1, listed.length + 1, 2**40):
        with pytest.raises(InvalidManifest) as error:
            await world.files.load(replace(listed, length=length))
        assert error.value.field == listed.path


async def test_a_manifest_of_an_unknown_spec_or_with_a_key_is_refused_unread(world: World):
    listed = await world.manifest()

    with pytest.raises(InvalidManifest, match="partition spec"):
        await world.files.load(replace(listed, spec_id=7))
    with pytest.raises(BadInput, match="encrypted"):
        await world.files.load(replace(listed, key_metadata=b"k"))
    with pytest.raises(BadInput, match="encrypted"):
        await world.files.list_manifests(Snapshot(1, 0, manifest_list="l", key_id="k"))
    assert world.watched.read_paths == []


async def test_garbage_as_a_list_is_refused_by_name(world: World):
    path = f"{world.writer.folder}/l.avro"
    await world.writer.put(path, b"no list")

    with pytest.raises(InvalidManifest) as error:
        await world.files.list_manifests(world.snapshot(path))
    assert error.value.field == path


async def test_a_list_that_is_in_no_snapshot_yet_is_read_each_time(world: World):
    first, second = await world.manifest(1), await world.manifest(2)
    path = await world.writer.list("l", [first])
    assert await world.files.read_list(path) == (first,)

    await world.writer.list("l", [second])

    assert await world.files.read_list(path) == (second,)
    assert await world.files.list_manifests(world.snapshot(path)) == (second,)


async def test_a_list_that_was_just_written_is_not_read(world: World):
    listed = await world.manifest()
    path = f"{world.writer.folder}/l.avro"

    world.files.remember_list(path, (listed,))

    assert await world.files.list_manifests(world.snapshot(path)) == (listed,)
    assert world.watched.read_paths == []


async def test_a_snapshot_of_version_1_may_name_its_manifests_itself(catalog: OpenCatalog):
    await make(catalog, properties={"format-version": "1"})
    table = await load(catalog)
    assert table.metadata.format_version == 1
    writer = Writer(catalog, table)
    listed = await writer.manifest("m", [data_file("a"), data_file("b")])
    files = TableFiles(catalog, table)

    (found,) = await files.list_manifests(Snapshot(1, 0, manifests=(listed.path,)))
    manifest = await files.load(found)

    assert (found.path, found.length, found.spec_id) == (listed.path, listed.length, 0)
    assert found.has_live_files
    assert [*manifest.paths] == ["a", "b"]
    assert [*manifest.snapshot_ids] == [1, 1]
    assert await files.list_manifests(Snapshot(1, 0)) == ()


async def test_a_table_whose_location_is_not_allowed_any_more_is_not_read(world: World):
    table = await load(world.catalog, T)
    world.catalog.entity = replace(
        world.catalog.entity,
        base_location="file:///nowhere",
        storage=replace(world.catalog.entity.storage, allowed_locations=("file:///nowhere",)),
    )

    with pytest.raises(LocationRefused):
        TableFiles(world.catalog, table)
