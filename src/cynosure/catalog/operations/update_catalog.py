"""Change a catalog: its properties, where its files may be, how its storage and its remote are reached.

A location that is taken from a catalog is out of bounds at once: tables that are there can still be loaded,
but not committed to, and nobody is given access to their files. The catalog keeps holding it, so that no
other catalog gets these files, until nothing of it is left there (`release_locations.py`).

Whoever may write a catalog's properties may take locations from it. To give it one, or to change in any other
way what its storage reaches and with which keys, is to decide what the server's own keys are used for: this
takes the right to create catalogs, whose owner could have such a catalog anyway. So does any change of a
connection.

Must not break: no location leaves the catalog's hold here.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import UNSET, Struct, structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import without_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Done
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.ceding import Cession, listing_cession
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.check_connection import check_warehouse
from cynosure.catalog.connection import Connection, ConnectionSecrets
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG, CatalogEntity, KeptLocation
from cynosure.catalog.errors import NoSuchCatalog
from cynosure.catalog.federated_properties import check_federated_properties, is_federated_property
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.listed import (
    RecalledCatalog,
    check_locations,
    list_held,
    load_listed,
    location_keys,
    outermost,
    require_unclaimed,
)
from cynosure.catalog.properties import check_no_secrets, check_properties, check_reserved
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.index import encode_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import CatalogId
from cynosure.persistence.store import NewObject
from cynosure.storage.config import StorageConfig, StorageKeys
from cynosure.storage.location import Location, is_allowed


class CatalogUpdate(Struct, frozen=True, kw_only=True):
    """What to change; what is left out stays."""

    set_properties: Mapping[str, str] = {}
    remove_properties: tuple[str, ...] = ()
    base_location: str | None = None
    storage: StorageConfig | None = None
    """The whole new configuration."""
    storage_keys: StorageKeys | None = None
    """New keys in clear; sealed before anything is stored."""
    connection: Connection | None = None
    """The whole new connection of a federated catalog, without secrets."""
    connection_secrets: ConnectionSecrets | None = None
    """New secrets in clear, all of them; left out, those stay that are stored."""
    version: int | None = None
    """Refuse when the catalog has another version by now."""


async def update_catalog(
    directory: Directory,
    caller: Caller,
    name: str,
    change: CatalogUpdate | Callable[[CatalogEntity], CatalogUpdate],
) -> CatalogEntity:
    """Change it. `NoSuchCatalog` when there is none, `LocationRefused` for locations of another catalog.

    `change` may be worked out from the very version that is changed.
    """

    def apply(entity: CatalogEntity) -> CatalogEntity:
        wanted = change(entity) if callable(change) else change
        named = (*wanted.set_properties, *wanted.remove_properties)
        check_reserved(each for each in named if not is_federated_property(each))
        check_no_secrets(wanted.set_properties)
        if wanted.version is not None and wanted.version != entity.version:
            raise Conflict(
                "The catalog has been changed meanwhile",
                fix="Look at it and change it again.",
                version=entity.version,
            )
        owner = (caller.realm, entity.id)
        kept = {key: value for key, value in entity.properties.items() if key not in wanted.remove_properties}
        return structs.replace(
            entity,
            properties={**kept, **wanted.set_properties},
            base_location=wanted.base_location or entity.base_location,
            storage=directory.storages.seal(wanted.storage or entity.storage, wanted.storage_keys, owner),
            connected_to=entity.connected_to
            if wanted.connection is None
            else directory.connections.change(
                entity.connection, wanted.connection, wanted.connection_secrets, owner
            ),
        )

    return await _change(directory, caller, name, apply, ops.UPDATE_CATALOG)


async def touch_catalog(directory: Directory, caller: Caller, name: str, catalog: CatalogId) -> None:
    """Make a new version of this very catalog that says the same: whoever relied on the old one notices.

    Stops a drop on its way, so it is for who may drop the catalog. Done as often as it is asked for, with an
    Idempotency-Key or without: it is a step of something else.
    """

    def apply(entity: CatalogEntity) -> CatalogEntity:
        if entity.id != catalog:
            raise NoSuchCatalog(name)
        return entity

    await _change(directory, without_key(caller), name, apply, ops.DROP_CATALOG, called="reopen-catalog")


async def own_catalog(directory: Directory, caller: Caller, name: str, catalog: CatalogId) -> CatalogEntity:
    """Make this very federated catalog one of ours: its connection ends, and its tables are changed here.

    The last step of a migration (`cynosure.federation.migration`), which has seen to it that the remote does
    not change them any more. Done already, it is done.
    """

    def apply(entity: CatalogEntity) -> CatalogEntity:
        if entity.id != catalog:
            raise NoSuchCatalog(name)
        properties = {
            key: value for key, value in entity.properties.items() if not is_federated_property(key)
        }
        return structs.replace(entity, kind="INTERNAL", connected_to=UNSET, properties=properties)

    return await _change(
        directory, without_key(caller), name, apply, ops.MIGRATE_CATALOG, called="own-catalog"
    )


async def adopt_locations(
    directory: Directory, caller: Caller, name: str, cession: Cession, places: list[Location]
) -> CatalogEntity:
    """Give this very catalog places that another one has ceded to it (`catalog.ceding`).

    A step of a migration, which has seen to it that the giver has nothing there any more but what it gives.
    For who may move both and may create catalogs. Done already, it is done.
    """
    listed = await load_listed(await directory.read(caller.realm), name)

    def apply(entity: CatalogEntity) -> CatalogEntity:
        if entity.id != cession.taker:
            raise NoSuchCatalog(name)
        return with_locations(entity, places)

    if listed.entity.id == cession.taker and apply(listed.entity) == listed.entity:
        return listed.entity
    return await _change(
        directory,
        without_key(caller),
        name,
        apply,
        ops.MIGRATE_CATALOG,
        called="adopt-locations",
        besides=listing_cession(places, cession),
    )


def with_locations(entity: CatalogEntity, places: Iterable[Location]) -> CatalogEntity:
    """A catalog that may use these places, too."""
    storage = entity.storage
    allowed = [Location.parse(text) for text in storage.allowed_locations]
    added = tuple(each.text for each in places if not is_allowed(each, allowed))
    wider = structs.replace(storage, allowed_locations=(*storage.allowed_locations, *added))
    return structs.replace(entity, storage=wider)


async def rewrap_catalog(
    directory: Directory, caller: Caller, name: str, catalog: CatalogId, *, is_rehearsal: bool = False
) -> bool:
    """Put the keys and secrets of this very catalog under the primary master key; whether any were not.

    For operators: which key protects what is not for a catalog's owner to see or say.
    """

    def apply(entity: CatalogEntity) -> CatalogEntity:
        if entity.id != catalog:
            raise NoSuchCatalog(name)
        return _rewrap(directory, caller, entity)

    await directory.authorize(caller, ops.EXTEND_STORAGE, RealmTarget(caller.realm))
    entity = (await load_listed(await directory.read(caller.realm), name)).entity
    if apply(entity) == entity:
        return False
    if not is_rehearsal:
        rewrapping = "rewrap-catalog"
        await _change(directory, without_key(caller), name, apply, ops.UPDATE_CATALOG, called=rewrapping)
    return True


def _rewrap(directory: Directory, caller: Caller, entity: CatalogEntity) -> CatalogEntity:
    owner = (caller.realm, entity.id)
    connection = entity.connection
    return structs.replace(
        entity,
        storage=directory.storages.rewrap(entity.storage, owner),
        connected_to=UNSET if connection is None else directory.connections.rewrap(connection, owner),
    )


async def _change(
    directory: Directory,
    caller: Caller,
    name: str,
    apply: Callable[[CatalogEntity], CatalogEntity],
    operation: Operation,
    *,
    called: str = "",
    besides: Changes | None = None,
) -> CatalogEntity:
    """`besides`: what else the list says from then on."""
    persistence = directory.shared.persistence
    key = encode_key(name)

    async def check(view: View) -> Guards:
        return (await directory.authorize_on(view, caller, operation, name))[1]

    async def prepare(view: View) -> Prepared[CatalogEntity]:
        listed, guards = await directory.authorize_on(view, caller, operation, name)
        entity = structs.replace(
            apply(listed.entity),
            version=listed.entity.version + 1,
            updated_us=max(persistence.clock.now_us(), listed.entity.updated_us),
        )
        entity = structs.replace(entity, kept=_list_kept(listed.entity, entity))
        check_properties(entity.properties, directory.shared.settings.sizes)
        check_federated_properties(entity.properties, is_federated=entity.connection is not None)
        check_locations(entity)
        if entity.connection is not None:
            check_warehouse(entity.connection, entity.base_location)
        if _reaches_more(listed.entity, entity):
            guards = join_guards(
                guards, await directory.authorize(caller, ops.EXTEND_STORAGE, RealmTarget(caller.realm))
            )
        before, after = location_keys(listed.entity), location_keys(entity)
        below = Overlay(view)
        below.add(besides or {})
        await require_unclaimed(below, list_held(entity), entity.id)
        new = NewObject(CATALOG, persistence.ids.next(), entity)
        value = ObjRef(new.id, CATALOG.name).pack()
        claims: dict[bytes, bytes | None] = dict.fromkeys(before - after)
        claims.update(dict.fromkeys(after - before, entity.id.encode()))
        told = Change(
            kind="catalog-updated",
            index="names",
            key=key,
            before=listed.ref.pack(),
            after=value,
            detail=raw_detail({"id": entity.id, "name": name}),
        )
        changes: Changes = {"names": {key: value}, "locations": claims}
        merge(changes, besides or {})
        return Prepared(entity, changes, [new], [told], guards)

    return await directory.commit_authorizing(
        caller,
        called or operation.name,
        prepare,
        check=check,
        recall=_RecalledUpdate(directory, caller),
    )


class _RecalledUpdate(RecalledCatalog):
    """Of a change that reached more, to those who may still make such a one."""

    def __init__(self, directory: Directory, caller: Caller) -> None:
        self._directory = directory
        self._caller = caller

    async def recall(self, done: Done) -> CatalogEntity:
        """See `Recall.recall`."""
        updated = await super().recall(done)
        ids = [ObjRef.unpack(each.before).id for each in done.record.changes if each.before is not None]
        for before in await done.before.load_many(CATALOG, ids):
            if _reaches_more(before, updated):
                realm = RealmTarget(self._caller.realm)
                await self._directory.authorize(self._caller, ops.EXTEND_STORAGE, realm)
        return updated


def _list_kept(before: CatalogEntity, after: CatalogEntity) -> tuple[KeptLocation, ...]:
    """What the catalog holds and may not use after the change."""
    left = [KeptLocation(each.text, after.updated_us) for each in outermost(before)]
    allowed = outermost(after)
    return tuple(
        each for each in (*before.kept, *left) if not is_allowed(Location.parse(each.location), allowed)
    )


def _reaches_more(before: CatalogEntity, after: CatalogEntity) -> bool:
    """Whether the storage is more, or another one, than it was; or the remote is reached in another way."""
    if after.connection != before.connection:
        return True
    allowed = outermost(before)
    if not all(is_allowed(each, allowed) for each in outermost(after)):
        return True
    return (
        structs.replace(after.storage, allowed_locations=before.storage.allowed_locations) != before.storage
    )
