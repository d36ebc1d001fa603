"""All files of a table on their way: each once, in an order that leaves nothing half, and what cannot go."""

import asyncio
from typing import IO

import pytest
from msgspec.structs import replace

from cynosure.common.errors import BadInput, NotFound, Unavailable
from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.manifest_list import read_manifest_list
from cynosure.iceberg.manifests.repath import list_named_files
from tests.client.copying.small_source import HERE, THERE, MemoryFiles, SmallSource

pytestmark = pytest.mark.anyio
ADDED, EXISTING, DELETED = Status.ADDED, Status.EXISTING, Status.DELETED


def make_source() -> SmallSource:
    source = SmallSource()
    one, two, three = (source.data(f"{name}.parquet") for name in ("one", "two", "three"))
    source.commit([(ADDED, one), (ADDED, two)])
    source.commit([(ADDED, source.positions("d.parquet", (one.path, 0)))], [(ADDED, three), (EXISTING, two)])
    return source


def check_whole(files: dict[str, bytes]) -> None:
    """Everything that a list or a manifest names is there."""
    for path, data in files.items():
        if "/snap-" in path:
            for listed in read_manifest_list(data, path=path).manifests:
                assert len(files[listed.path]) == listed.length
        elif path.endswith(".avro"):
            for named in list_named_files(data, path=path):
                if named.status is not DELETED:
                    assert len(files[named.path]) == named.size_bytes


async def test_each_file_is_read_and_written_once() -> None:
    source, into = make_source(), MemoryFiles()

    done = await source.copy(into)

    assert sorted(source.store.reads) == sorted(source.store.files)
    assert sorted(into.order) == sorted(path.replace(HERE, THERE) for path in source.store.files)
    assert (done.copied, done.found) == (len(into.files), 0)
    assert done.copied_bytes == sum(map(len, into.files.values()))
    check_whole(into.files)


async def test_a_file_of_deletes_that_two_manifests_name_is_rewritten_once() -> None:
    """As Spark writes them: one file of vectors, and a manifest for each partition spec that it is about."""

    class Slow(MemoryFiles):
        async def read(self, location: str, into: IO[bytes]) -> int:
            await asyncio.sleep(0.2 if location.endswith("/d.parquet") else 0)
            return await super().read(location, into)

    source, into = SmallSource(), MemoryFiles()
    source.store = Slow()
    one = source.data("one.parquet")
    deletes = source.positions("d.parquet", (one.path, 0))
    source.commit([(ADDED, one)], [(ADDED, deletes)], [(ADDED, deletes)])

    await source.copy(into)

    assert source.store.reads.count(deletes.path) == 1
    assert into.order.count(f"{THERE}/data/d.parquet") == 1
    check_whole(into.files)


async def test_cut_off_anywhere_nothing_names_what_is_not_there_and_it_goes_on() -> None:
    total = len(make_source().store.files)
    for writes in range(total):
        source, into = make_source(), MemoryFiles()
        into.writes_left = writes
        with pytest.raises(Unavailable):
            await source.copy(into)
        assert len(into.order) == writes
        check_whole(into.files)
        before = {path for path in into.order if path.endswith(".parquet")}

        into.writes_left, into.order = 1_000, []
        done = await source.copy(into)

        check_whole(into.files)
        assert len(into.files) == total
        assert before.isdisjoint(into.order)
        assert done.found == len(before)


async def test_what_a_snapshot_took_away_may_be_gone() -> None:
    source, into = make_source(), MemoryFiles()
    old = source.data("old.parquet")
    source.commit([(DELETED, old), (EXISTING, source.data("kept.parquet"))])
    del source.store.files[old.path]

    await source.copy(into)

    assert f"{THERE}/data/kept.parquet" in into.files
    manifest = into.files[f"{THERE}/metadata/103-m0.avro"]
    assert [each.path for each in list_named_files(manifest, path="m")] == [
        f"{THERE}/data/old.parquet",
        f"{THERE}/data/kept.parquet",
    ]


async def test_a_file_that_is_gone_is_told() -> None:
    source = make_source()
    del source.store.files[f"{HERE}/data/three.parquet"]

    with pytest.raises(NotFound) as refused:
        await source.copy(MemoryFiles())
    assert refused.value.details["location"] == f"{HERE}/data/three.parquet"
    assert "Run it again" in refused.value.fix


async def test_position_deletes_of_other_formats_and_encrypted_files_are_told() -> None:
    source = make_source()
    positions = source.positions("d.parquet", ("x", 1))
    source.commit([(ADDED, replace(positions, format="orc", path=f"{HERE}/data/d.orc"))])
    with pytest.raises(BadInput, match="format that this client cannot rewrite"):
        await source.copy(MemoryFiles())

    source = make_source()
    source.commit([(ADDED, replace(source.data("secret.parquet"), key_metadata=b"key"))])
    with pytest.raises(BadInput, match="encrypted"):
        await source.copy(MemoryFiles())

    source = make_source()
    source.manifests = [replace(each, key_metadata=b"key") for each in source.manifests]
    source.commit([(ADDED, source.data("more.parquet"))])
    with pytest.raises(BadInput, match="encrypted"):
        await source.copy(MemoryFiles())
