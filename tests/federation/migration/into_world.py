"""A federated catalog whose tables go into another one of the same server, with files that can be read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cynosure.auth.caller import Caller
from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable, create_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.table_changes import TableChange
from cynosure.client.migration import Choices
from cynosure.federation.remote import RemoteTable
from cynosure.iceberg.metadata import encode_metadata
from cynosure.iceberg.views import encode_view
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.storage.location import Location
from cynosure.testing.remote_samples import Stage, plan_view
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.tables import updates
from tests.federation.migration.moving import U, ask
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T, answer_of

V = Identifier(NS, "recent")
STAYS = Identifier(NS, "stays")
OURS = Choices(into="ours")


class Two:
    """The federated catalog `far`, and `ours`, which gets its tables."""

    def __init__(self, far: Far) -> None:
        self.far = far

    async def open(self, name: str = "ours") -> OpenCatalog:
        """As any process finds it now."""
        return await self.far.directory.open(DEFAULT_REALM, name)

    async def put(self, table: Identifier = T, at: str = "orders", **more: Any) -> RemoteTable:
        """Somebody commits a version at the remote, and writes its file."""
        found = self.far.put(table, at, **more)
        await self.write(found.tag.metadata_location, encode_metadata(found.metadata))
        return found

    async def put_view(self, view: Identifier = V) -> None:
        found = self.far.remote.put_view(
            view, plan_view(Stage(self.far.remote, self.far.catalog.base.text), view)
        )
        await self.write(found.tag.metadata_location, encode_view(found.metadata))

    async def fill(self) -> None:
        """Three tables, one of them in a nested namespace, and one that is seen already."""
        await self.put()
        await self.put(U, "items", uuid=OTHER_UUID)
        await self.put(STAYS, "stays", uuid=THIRD_UUID)
        await self.far.see()

    async def write(self, file: str | None, data: bytes) -> None:
        await self.far.catalog.files.write(Location.parse(file or ""), data)

    async def count_commits(self) -> list[int]:
        """Of all that a migration changes."""
        states = [await (await self.open(name)).read() for name in ("far", "ours")]
        states.append(await self.far.directory.read(DEFAULT_REALM))
        return [state.commit.record.sequence for state in states]

    async def disagreements(self) -> list[str]:
        return [
            each
            for name in ("far", "ours")
            for each in await find_disagreements(await (await self.open(name)).read())
        ]

    async def load(self, table: Identifier = T, caller: Caller = ROOT) -> Mapping[str, Any]:
        return answer_of(await load_table(await self.open(), caller, table))

    async def commit(self, table: Identifier = T) -> None:
        """Somebody writes the table where it is now."""
        change = TableChange(
            table, (), tuple(updates({"action": "set-properties", "updates": {"ours": "1"}}))
        )
        await commit_table(await self.open(), ROOT, change)

    async def create(
        self, catalog: str, table: Identifier, location: str, caller: Caller = ROOT
    ) -> CreatedTable:
        wanted = CreateTable(table.namespace, table.name, msgspec.Raw(SCHEMA), location=location)
        return await create_table(await self.open(catalog), caller, wanted)

    def place(self, at: str) -> str:
        return f"{self.far.catalog.base.text}/{at}"

    async def prepare_giving(self, *tables: Identifier) -> None:
        """All of a migration up to where places change hands."""
        chosen = tuple((*each.namespace, each.name) for each in tables)
        await ask(self.far, {"step": "begin", "into": "ours", "tables": chosen})
        for each in tables:
            await ask(self.far, {"step": "take", "type": "table", "namespace": each.namespace})
        await ask(self.far, {"step": "settle"})


async def make_catalog(far: Far, name: str = "ours", *places: str, kind: Any = "INTERNAL") -> OpenCatalog:
    """A catalog of our own with its files beside those of the federated one."""
    location = f"{far.catalog.base.text.rpartition('/')[0]}/{name}"
    Path(location.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
    storage = FileStorage(allowed_locations=(location, *places))
    await create_catalog(
        far.directory, ROOT, NewCatalog(name=name, base_location=location, storage=storage, kind=kind)
    )
    return await far.directory.open(DEFAULT_REALM, name)
