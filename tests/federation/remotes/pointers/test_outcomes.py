"""A change whose answer is lost: done, lost to another, or nobody knows."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import OutcomeUnknown
from cynosure.federation.errors import RemoteConflict
from cynosure.federation.pointers import Pointer
from cynosure.federation.remote import RemoteTable
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.remotes.settling import Outcome, settle
from cynosure.iceberg.metadata import with_previous_file
from cynosure.storage.location import Location
from cynosure.testing.harness.faults import CutRequest
from cynosure.testing.remote_samples import Stage, plan_table, setting
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import Corner, Proxies
from tests.federation.remotes.pointers.lakes import open_lake

pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.glue, pytest.mark.postgres, pytest.mark.s3]


@pytest.fixture
async def catalog(corner: Corner, minio: S3Server, tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    async with open_lake(tmp_path, corner, minio, minio.fresh_location("pointers")) as opened:
        yield opened


@pytest.fixture
async def remote(corner: Corner, catalog: OpenCatalog) -> AsyncIterator[PointerRemote]:
    opened = PointerRemote(corner.open(), catalog)
    yield opened
    await opened.close()


@pytest.fixture
async def base(remote: PointerRemote, catalog: OpenCatalog) -> tuple[Identifier, RemoteTable]:
    """A table, and its first version."""
    table = Identifier((f"open_{uuid.uuid4().hex[:12]}",), "orders")
    await remote.create_namespace(table.namespace, {})
    await remote.create_table(plan_table(Stage(remote, catalog.base.text), table))
    loaded = await remote.load_table(table)
    assert isinstance(loaded, RemoteTable)
    return table, loaded


async def test_a_change_that_was_made_is_found_to_be(
    corner: Corner,
    catalog: OpenCatalog,
    remote: PointerRemote,
    base: tuple[Identifier, RemoteTable],
    fault_proxy: Proxies,
):
    table, first = base
    proxy = await fault_proxy(corner.connection.uri)
    rule = proxy.lose_answer_after(corner.swaps())
    distant = PointerRemote(corner.open(proxy.url), catalog)

    changed = await distant.commit_table(setting(table, first, color="red"))
    await distant.close()

    assert rule.hits == 1
    now = await remote.load_table(table)
    assert isinstance(now, RemoteTable)
    assert now.tag.metadata_location == changed.tag.metadata_location
    assert now.metadata.properties["color"] == "red"


async def test_a_change_that_may_still_come_is_unknown_and_its_file_is_kept(
    corner: Corner,
    catalog: OpenCatalog,
    remote: PointerRemote,
    base: tuple[Identifier, RemoteTable],
    fault_proxy: Proxies,
):
    table, first = base
    proxy = await fault_proxy(corner.connection.uri)
    proxy.add(CutRequest(after_bytes=20), when=corner.swaps())
    distant = PointerRemote(corner.open(proxy.url), catalog)

    with pytest.raises(OutcomeUnknown):
        await distant.commit_table(setting(table, first, color="red"))
    await distant.close()
    await catalog.shared.background.close()

    now = await remote.load_table(table)
    assert isinstance(now, RemoteTable)
    assert now.tag.metadata_location == first.tag.metadata_location
    assert len(await list_files(catalog, first)) == 2


async def test_a_change_that_another_overtook_is_a_conflict_and_its_file_is_removed(
    corner: Corner,
    catalog: OpenCatalog,
    remote: PointerRemote,
    base: tuple[Identifier, RemoteTable],
    fault_proxy: Proxies,
):
    if corner.connection.type == "HIVE":
        pytest.skip("the lock of the change that may still come keeps others out")
    table, first = base
    proxy = await fault_proxy(corner.connection.uri)
    rule = proxy.add(CutRequest(after_bytes=20), when=corner.swaps())
    pointers = corner.open(proxy.url)
    find = pointers.find

    async def find_late(table: Identifier) -> object:
        # Behind the swap that was cut off, somebody else's comes.
        if rule.hits and not overtaken:
            overtaken.append(await remote.commit_table(setting(table, first, color="blue")))
        return await find(table)

    overtaken: list[RemoteTable] = []
    pointers.find = find_late
    distant = PointerRemote(pointers, catalog)

    with pytest.raises(RemoteConflict):
        await distant.commit_table(setting(table, first, color="red"))
    await distant.close()
    await catalog.shared.background.close()

    now = await remote.load_table(table)
    assert isinstance(now, RemoteTable)
    assert now.tag.metadata_location == overtaken[0].tag.metadata_location
    assert len(await list_files(catalog, first)) == 2


async def test_where_a_late_swap_is_not_refused_it_stays_open_and_its_file_stays(
    corner: Corner,
    catalog: OpenCatalog,
    remote: PointerRemote,
    base: tuple[Identifier, RemoteTable],
    monkeypatch: pytest.MonkeyPatch,
):
    table, first = base
    pointers = corner.open()
    able = replace(pointers.abilities, refuses_late_swaps=False)
    monkeypatch.setattr(type(pointers), "abilities", property(lambda _: able))

    async def swap_late(*_: object) -> Pointer:
        await remote.commit_table(setting(table, first, color="blue"))
        raise OutcomeUnknown("The answer was lost")

    pointers.swap = swap_late
    distant = PointerRemote(pointers, catalog)
    with pytest.raises(OutcomeUnknown):
        await distant.commit_table(setting(table, first, color="red"))
    await distant.close()
    await catalog.shared.background.close()
    assert len(await list_files(catalog, first)) == 3


async def list_files(catalog: OpenCatalog, table: RemoteTable) -> list[str]:
    place = Location.parse(f"{table.metadata.location}/metadata")
    return [found.location.text async for page in catalog.files.list(place) for found in [page]]


# --- what the log of a table proves --------------------------------------------------------------


def test_what_is_not_proven_is_open():
    metadata = plan_table(Stage(None, "s3://bucket"), Identifier(("ns",), "t")).metadata
    theirs, _ = with_previous_file(metadata, "s3://b/before", 1)
    ours, _ = with_previous_file(theirs, "s3://b/written", 2)
    trimmed = msgspec.structs.replace(ours, metadata_log=metadata.metadata_log)

    def found(pointer: str | None, said: object, before: str | None = "s3://b/before") -> Outcome:
        return settle(pointer, said, written="s3://b/written", before=before)

    assert found("s3://b/written", None) is Outcome.DONE
    assert found("s3://b/later", ours) is Outcome.DONE
    assert found("s3://b/other", theirs) is Outcome.LOST
    assert found("s3://b/before", metadata) is Outcome.OPEN
    assert found("s3://b/other", trimmed) is Outcome.OPEN
    assert found("s3://b/other", None) is Outcome.OPEN
    assert found(None, None) is Outcome.OPEN
    assert found("s3://b/other", theirs, before=None) is Outcome.OPEN
    assert found("s3://b/later", ours, before=None) is Outcome.DONE


async def test_a_creation_whose_answer_is_lost_is_found_to_be_made(
    corner: Corner, catalog: OpenCatalog, remote: PointerRemote, fault_proxy: Proxies
):
    table = Identifier((f"open_{uuid.uuid4().hex[:12]}",), "orders")
    await remote.create_namespace(table.namespace, {})
    proxy = await fault_proxy(corner.connection.uri)
    rule = proxy.lose_answer_after(corner.creates())
    distant = PointerRemote(corner.open(proxy.url), catalog)

    created = await distant.create_table(plan_table(Stage(remote, catalog.base.text), table))
    await distant.close()

    assert rule.hits == 1
    now = await remote.load_table(table)
    assert isinstance(now, RemoteTable)
    assert now.tag.metadata_location == created.tag.metadata_location
