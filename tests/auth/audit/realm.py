"""Commits to the references of a realm, as operations make them, without the rooms above."""

from collections.abc import Sequence
from datetime import timedelta

from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.collect import EventCollector
from cynosure.auth.audit.events import StoredEvent
from cynosure.auth.audit.journal import audit_of, load_batches
from cynosure.persistence.commit import Change, Prepared, Request, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import (
    CATALOG_REFERENCES,
    DEFAULT_REALM,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.scopes import REALM_ENTRY, RealmEntry
from cynosure.persistence.settings import GcSettings, NodeLeaseSettings, PersistenceSettings
from cynosure.persistence.spi import CatalogId, RefKey
from cynosure.persistence.store import NewObject
from cynosure.testing.harness.clock import ManualClock

SETTINGS = PersistenceSettings(
    # Clocks leap in these tests; a lease must outlive that.
    node_lease=NodeLeaseSettings(duration=timedelta(days=4_000), renewal=timedelta(days=2_000)),
    gc=GcSettings(rows_per_second=0),
)
LAKE = CatalogId("1001")


class Realm:
    """The default realm of a store."""

    def __init__(self, persistence: Persistence) -> None:
        self.persistence = persistence
        self.collector = EventCollector(persistence, CatalogNames(persistence))

    async def commit(self, key: RefKey, change: Change, *, removes: bool = False, **request: object) -> None:
        """One request with one change; the value it puts is of no meaning."""

        async def prepare(view: View) -> Prepared[None]:
            new = NewObject(REALM_ENTRY, self.persistence.ids.next(), RealmEntry(name="value", created_us=1))
            value = None if removes else ObjRef(new.id, REALM_ENTRY.name).pack()
            changes: dict[str, dict[bytes, bytes | None]] = {"names": {change.key: value}}
            if key.name == "catalogs":
                changes["ids"] = {encode_key(LAKE): None if removes else change.key}
            return Prepared(None, changes, () if removes else [new], [change])

        if isinstance(self.persistence.clock, ManualClock):
            self.persistence.clock.step_wall(0.001)
        wanted = {"principal": "ann", "operation": "test", **request}
        await self.persistence.committer(key).commit(Request(prepare, **wanted))  # type: ignore[arg-type]

    async def do(self, name: str, **request: object) -> None:
        """A change to the realm's principals."""
        detail = raw_detail({"id": 7, "name": name})
        change = Change(kind="principal-created", index="names", key=encode_key("p", name), detail=detail)
        await self.commit(realm_reference(DEFAULT_REALM, "principals"), change, **request)

    async def create_catalog(self, name: str = "lake") -> None:
        for reference in CATALOG_REFERENCES:
            key = catalog_reference(DEFAULT_REALM, LAKE, reference)
            await ensure_reference(self.persistence.backend, key, self.persistence.clock)
        detail = raw_detail({"id": LAKE, "name": name})
        change = Change(kind="catalog-created", index="names", key=encode_key(name), detail=detail)
        await self.commit(realm_reference(DEFAULT_REALM, "catalogs"), change)

    async def drop_catalog(self, name: str = "lake") -> None:
        detail = raw_detail({"id": LAKE, "name": name})
        change = Change(kind="catalog-dropped", index="names", key=encode_key(name), detail=detail)
        await self.commit(realm_reference(DEFAULT_REALM, "catalogs"), change, removes=True)

    async def delete_catalog(self) -> None:
        """What the repairer does later."""
        backend = self.persistence.backend
        for ref in await backend.list_refs(DEFAULT_REALM):
            if ref.key.catalog == LAKE:
                assert await backend.delete_ref(ref)

    async def create_table(self, *path: str, **request: object) -> None:
        detail = raw_detail({"id": 9, "path": path})
        key = encode_key(f"t{len(path) - 1}", *path)
        change = Change(kind="table-created", index="names", key=key, detail=detail)
        await self.commit(catalog_reference(DEFAULT_REALM, LAKE, "main"), change, **request)

    async def collect(self) -> list[StoredEvent]:
        """Everything there is, after collecting."""
        await self.collector.collect(DEFAULT_REALM)
        return await self.list_events()

    async def list_events(self) -> list[StoredEvent]:
        return [event for _, event in await self.list_numbered()]

    async def list_numbered(self) -> Sequence[tuple[int, StoredEvent]]:
        state = (await audit_of(self.persistence, DEFAULT_REALM).read(is_fresh=True)).state
        batches = await load_batches(state, 0, 1_000)
        return [each for batch in batches for each in batch.numbered()]


def names(events: Sequence[StoredEvent]) -> list[str]:
    """What the events are about."""
    return [each.name for event in events for each in event.targets]
