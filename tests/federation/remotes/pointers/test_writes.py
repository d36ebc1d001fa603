"""Changes through a federated catalog whose remote is a real metastore, with keys and with deaths."""

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.clock import SystemClock
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.federation.clients import Clients
from cynosure.federation.errors import NotOffered
from cynosure.federation.operations import FederatedOperations
from cynosure.federation.remote import RemoteTable
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.seeing import Federation
from cynosure.iceberg.errors import RequirementFailed
from cynosure.testing.remote_samples import fresh_name
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_catalog import ROOT
from tests.federation.remotes.pointers.corners import HASTY, Corner
from tests.federation.remotes.pointers.lakes import open_lake
from tests.federation.seen_world import answer_of
from tests.federation.writes.changes import Keyed, appending, creation, setting
from tests.federation.writes.losing_remote import Killed

pytestmark = [pytest.mark.anyio, pytest.mark.s3]


class Here(NamedTuple):
    catalog: OpenCatalog
    writes: FederatedOperations
    remote: PointerRemote
    table: Identifier


@pytest.fixture
async def here(corner: Corner, minio: S3Server, tmp_path: Path) -> AsyncIterator[Here]:
    place = minio.fresh_location("writes")
    async with open_lake(tmp_path, corner, minio, place) as catalog:
        remote = PointerRemote(corner.open(), catalog)
        keyring = cache(lambda: open_keyring(KeyringSettings(), tmp_path))
        clients = Clients(HASTY, keyring, SystemClock(), opening=lambda _: remote)
        federation = Federation(clients, HASTY, SystemClock())
        writes = FederatedOperations(federation)
        table = Identifier((fresh_name("ns"),), "orders")
        await writes.create_namespace(catalog, ROOT, table.namespace, {"location": f"{place}/ns"})
        yield Here(catalog, writes, remote, table)
        await federation.close()


async def at_remote(here: Here, table: Identifier) -> RemoteTable:
    found = await here.remote.load_table(table)
    assert isinstance(found, RemoteTable)
    return found


async def append(here: Here, snapshot: int, caller: Any = ROOT) -> Any:
    there = await at_remote(here, here.table)
    change = appending(there.metadata.location, table=here.table, snapshot=snapshot)
    add = change.updates[0]
    body = bytes(add.snapshot).replace(b"1767225660000", str(there.metadata.last_updated_ms + 1).encode())
    updates = [type(add)(snapshot=type(add.snapshot)(body)), *change.updates[1:]]
    return await here.writes.commit_table(
        here.catalog, caller, type(change)(change.table, change.requirements, updates)
    )


async def test_tables_are_made_changed_renamed_and_dropped_there(here: Here) -> None:
    made = await here.writes.create_table(here.catalog, ROOT, creation(here.table))
    there = await at_remote(here, here.table)
    assert there.metadata.table_uuid == answer_of(made.answer)["table-uuid"]

    answer = await append(here, 17)
    assert answer_of(answer)["current-snapshot-id"] == 17
    assert (await at_remote(here, here.table)).metadata.current_snapshot_id == 17
    with pytest.raises(RequirementFailed):
        await append(here, 18)

    other = Identifier(here.table.namespace, "sales")
    await here.writes.rename_table(here.catalog, ROOT, here.table, other)
    assert answer_of(await load_table(here.catalog, ROOT, other))["current-snapshot-id"] == 17
    with pytest.raises(NotOffered):
        await here.writes.drop_table(here.catalog, ROOT, other, is_purge_requested=True)
    await here.writes.drop_table(here.catalog, ROOT, other)
    with pytest.raises(NoSuchTable):
        await here.remote.load_table(other)


async def test_a_death_behind_the_remote_is_one_effect(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    die_after(monkeypatch, "create_table")
    request = Keyed()
    with pytest.raises(Killed):
        await here.writes.create_table(here.catalog, request.first(), creation(here.table))
    made = await here.writes.create_table(here.catalog, request.again(), creation(here.table))
    there = await at_remote(here, here.table)
    assert answer_of(made.answer)["table-uuid"] == there.metadata.table_uuid

    die_after(monkeypatch, "commit_table")
    request = Keyed()
    with pytest.raises(Killed):
        await append(here, 17, request.first())
    answer = await append(here, 17, request.again())
    assert [each["snapshot-id"] for each in answer_of(answer)["snapshots"]] == [17]

    die_after(monkeypatch, "commit_table")
    request = Keyed()
    change = setting(here.table, a="b")
    with pytest.raises(Killed):
        await here.writes.commit_table(here.catalog, request.first(), change)
    again = await here.writes.commit_table(here.catalog, request.again(), change)
    assert answer_of(again)["properties"]["a"] == "b"

    die_after(monkeypatch, "drop_table")
    request = Keyed()
    with pytest.raises(Killed):
        await here.writes.drop_table(here.catalog, request.first(), here.table)
    await here.writes.drop_table(here.catalog, request.again(), here.table)


def die_after(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The process dies when the remote has done this, once."""
    done = getattr(PointerRemote, name)

    async def dying(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(PointerRemote, name, done)
        await done(*args, **more)
        raise Killed

    monkeypatch.setattr(PointerRemote, name, dying)
