"""PyIceberg and we change the same tables, in a metastore, in Glue and in a database, with files in MinIO."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import obstore
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from cynosure.catalog.errors import LocationRefused, NoSuchView
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.errors import NotOffered, RemoteConflict, RemoteMisbehaved
from cynosure.federation.remote import UNCHANGED, NewTable, RemoteTable
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.testing.remote_samples import Stage, plan_table, plan_view, setting, widening
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import Corner, Proxies
from tests.federation.remotes.pointers.lakes import open_lake

pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.glue, pytest.mark.postgres, pytest.mark.s3]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False), NestedField(2, "note", StringType(), required=False)
)


class Both(NamedTuple):
    """A remote as PyIceberg has it and as we do, and one namespace in it."""

    engine: Catalog
    remote: PointerRemote
    catalog: OpenCatalog
    server: S3Server
    place: str
    table: Identifier

    @property
    def name(self) -> tuple[str, ...]:
        return (*self.table.namespace, self.table.name)

    def create(self) -> None:
        """With PyIceberg."""
        self.engine.create_table(self.name, SCHEMA, location=f"{self.place}/{'/'.join(self.name)}")

    def append(self, *ids: int) -> None:
        """With PyIceberg."""
        rows = pa.table({"id": pa.array(ids, pa.int64()), "note": pa.array(["x"] * len(ids))})
        self.engine.load_table(self.name).append(rows)

    async def load(self) -> RemoteTable:
        found = await self.remote.load_table(self.table)
        assert isinstance(found, RemoteTable)
        return found


@pytest.fixture
async def both(corner: Corner, minio: S3Server, tmp_path: Path) -> AsyncIterator[Both]:
    place = minio.fresh_location("pointers")
    async with open_lake(tmp_path, corner, minio, place) as catalog:
        remote = PointerRemote(corner.open(), catalog)
        engine = await asyncio.to_thread(corner.connect, minio, place)
        namespace = (f"both_{uuid.uuid4().hex[:12]}",)
        await asyncio.to_thread(engine.create_namespace, namespace)
        yield Both(engine, remote, catalog, minio, place, Identifier(namespace, "orders"))
        await remote.close()
        if (pool := getattr(engine, "engine", None)) is not None:
            pool.dispose()


async def test_what_pyiceberg_writes_is_loaded_and_our_change_is_seen_by_it(both: Both):
    await asyncio.to_thread(both.create)
    await asyncio.to_thread(both.append, 1, 2, 3)

    first = await both.load()
    changed = await both.remote.commit_table(setting(both.table, first, color="red"))
    seen = await asyncio.to_thread(both.engine.load_table, both.name)

    assert first.metadata.current_snapshot_id == seen.metadata.current_snapshot_id
    assert seen.metadata_location == changed.tag.metadata_location
    assert seen.properties["color"] == "red"
    assert [entry.metadata_file for entry in seen.metadata.metadata_log][-1] == first.tag.metadata_location
    assert sorted((await asyncio.to_thread(lambda: seen.scan().to_arrow())).column("id").to_pylist()) == [
        1,
        2,
        3,
    ]


async def test_a_table_that_we_create_is_written_by_pyiceberg_and_its_change_is_seen(both: Both):
    created = await both.remote.create_table(plan_table(Stage(both.remote, both.place), both.table))
    loaded = await both.load()
    assert await both.remote.load_table(both.table, loaded.tag) == UNCHANGED

    def add_column() -> None:
        with both.engine.load_table(both.name).update_schema() as change:
            change.add_column("more", StringType())

    await asyncio.to_thread(add_column)
    after = await both.remote.load_table(both.table, loaded.tag)

    assert isinstance(after, RemoteTable)
    assert after.metadata.table_uuid == created.metadata.table_uuid
    assert [field.name for field in after.metadata.current_schema().fields] == ["id", "note", "more"]
    assert after.tag.metadata_location != loaded.tag.metadata_location


async def test_files_are_numbered_on_from_what_pyiceberg_wrote(both: Both):
    await asyncio.to_thread(both.create)
    first = await both.load()

    second = await both.remote.commit_table(setting(both.table, first, color="red"))

    names = [(each.tag.metadata_location or "").rpartition("/")[2] for each in (first, second)]
    assert [name.partition("-")[0] for name in names] == ["00000", "00001"]


async def test_a_change_that_lost_is_a_conflict_and_its_file_is_removed(both: Both):
    await asyncio.to_thread(both.create)
    base = await both.load()
    await asyncio.to_thread(both.append, 1)
    won = await both.load()
    before = list_files(both)

    with pytest.raises(RemoteConflict):
        await both.remote.commit_table(setting(both.table, base, color="red"))
    await both.catalog.shared.background.close()

    assert list_files(both) == before
    assert (await both.load()).tag == won.tag


async def test_of_concurrent_changes_to_one_version_one_is_made(
    both: Both, corner: Corner, fault_proxy: Proxies
):
    proxy = await fault_proxy(corner.connection.uri)
    corner.refuse_late_swaps(proxy)
    remote = PointerRemote(corner.open(proxy.url), both.catalog)
    await asyncio.to_thread(both.create)
    base = await both.load()
    changes = [widening(both.table, base, f"column{number}") for number in range(4)]

    done = await asyncio.gather(*map(remote.commit_table, changes), return_exceptions=True)
    await remote.close()
    await both.catalog.shared.background.close()

    won = [each for each in done if isinstance(each, RemoteTable)]
    assert len(won) == 1, done
    assert sum(isinstance(each, RemoteConflict) for each in done) == 3, done
    seen = await asyncio.to_thread(both.engine.load_table, both.name)
    assert seen.metadata_location == won[0].tag.metadata_location
    assert len(list_files(both)) == 2


async def test_a_change_of_nothing_swaps_nothing(both: Both):
    await asyncio.to_thread(both.create)
    base = await both.remote.commit_table(setting(both.table, await both.load(), color="red"))

    again = await both.remote.commit_table(setting(both.table, base, color="red"))

    assert again is base
    assert (await both.load()).tag.metadata_location == base.tag.metadata_location


async def test_a_metadata_file_outside_of_what_the_catalog_allows_is_not_read(both: Both):
    outside = both.server.fresh_location("outside")
    elsewhere = f"{outside}/{both.table.name}"
    await asyncio.to_thread(both.engine.create_table, both.name, SCHEMA, location=elsewhere)

    with pytest.raises(LocationRefused):
        await both.remote.load_table(both.table)
    pointer = (await asyncio.to_thread(both.engine.load_table, both.name)).metadata_location
    with pytest.raises(LocationRefused):
        await both.remote.register_table(
            Identifier(both.table.namespace, "again"), pointer, is_overwrite=False
        )


async def test_nothing_is_written_outside_of_what_the_catalog_allows(both: Both):
    planned = plan_table(Stage(both.remote, both.server.fresh_location("outside")), both.table)
    hidden = plan_table(
        Stage(both.remote, both.place),
        both.table,
        **{"write.metadata.path": both.server.fresh_location("outside")},
    )

    for wanted in (planned, hidden):
        with pytest.raises(LocationRefused):
            await both.remote.create_table(NewTable(table=both.table, metadata=wanted.metadata))

    assert (await both.remote.list_tables(both.table.namespace, token=None, size=10)).names == []


async def test_a_pointer_to_a_missing_or_damaged_file_is_the_remotes_fault(both: Both):
    await asyncio.to_thread(both.create)
    loaded = await both.load()
    key = (loaded.tag.metadata_location or "").partition(f"{both.server.bucket}/")[2]
    bucket = both.server.open_bucket()

    await obstore.put_async(bucket, key, b'{"format-version": 2, "table-uuid"')
    with pytest.raises(RemoteMisbehaved):
        await both.remote.load_table(both.table)
    await obstore.delete_async(bucket, key)
    with pytest.raises(RemoteMisbehaved):
        await both.remote.load_table(both.table)


async def test_an_overwriting_registration_swaps_the_pointer(both: Both):
    await asyncio.to_thread(both.create)
    first = await both.load()
    await both.remote.commit_table(setting(both.table, first, color="red"))
    assert first.tag.metadata_location

    back = await both.remote.register_table(both.table, first.tag.metadata_location, is_overwrite=True)

    assert back.metadata.properties.get("color") is None
    assert (await both.load()).tag.metadata_location == first.tag.metadata_location


async def test_files_are_not_purged(both: Both):
    await asyncio.to_thread(both.create)

    with pytest.raises(NotOffered):
        await both.remote.drop_table(both.table, is_purge=True)
    await both.remote.drop_table(both.table, is_purge=False)

    assert not await asyncio.to_thread(both.engine.table_exists, both.name)
    assert len(list_files(both)) == 1


def list_files(both: Both) -> list[str]:
    """All metadata files of the table's namespace."""
    prefix = both.place.partition(f"{both.server.bucket}/")[2]
    pages = obstore.list(both.server.open_bucket(), f"{prefix}/")
    paths = [found["path"] for page in pages for found in page]
    return sorted(path for path in paths if path.endswith(".metadata.json"))


async def test_what_it_does_not_offer_is_refused_without_asking(both: Both):
    view = Identifier(both.table.namespace, "report")

    with pytest.raises(NotOffered):
        await both.remote.commit_transaction([])
    with pytest.raises(NotOffered):
        await both.remote.create_view(view, plan_view(Stage(both.remote, both.place), view))
    with pytest.raises(NoSuchView):
        await both.remote.load_view(view)
    assert (await both.remote.list_views(both.table.namespace, token=None, size=10)).names == ()
