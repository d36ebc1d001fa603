"""Create a catalog.

Order as in `persistence.scopes`: its references first, then `catalog_admin` in `grants`, then the entry in
the realm's list, then the references are adopted. A crash before the entry leaves what no list names: the
repairer removes it, with the role in it. A crash after it, while the repairer deletes what it took for left
over, leaves a catalog without references, which are made again empty; the role is made sure of after they
are adopted, and at every start of a server (`roles.first_role`).

A request that is made again under its Idempotency-Key finds its own entry, and completes what comes after it.
Must not break: that it does so only while the catalog is listed. A dropped one stays without references.
"""

from msgspec import UNSET, Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing
from cynosure.auth.errors import NoSuchPrincipalRole
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.check_connection import check_warehouse
from cynosure.catalog.connection import Connection, ConnectionSecrets
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG, CatalogEntity, CatalogKind
from cynosure.catalog.errors import CatalogExists
from cynosure.catalog.federated_properties import check_federated_properties, is_federated_property
from cynosure.catalog.guards import Guards
from cynosure.catalog.listed import (
    RecalledCatalog,
    check_catalog_name,
    check_locations,
    outermost,
    require_unclaimed,
)
from cynosure.catalog.properties import check_no_secrets, check_properties, check_reserved
from cynosure.catalog.roles.first_role import ensure_catalog_admin
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import CATALOG_REFERENCES, catalog_reference
from cynosure.persistence.scopes import adopt_references, prepare_references
from cynosure.persistence.spi import CatalogId, RefKey
from cynosure.persistence.store import NewObject
from cynosure.storage.config import StorageConfig, StorageKeys


class NewCatalog(Struct, frozen=True, kw_only=True):
    """A catalog to be created."""

    name: str
    base_location: str
    storage: StorageConfig
    storage_keys: StorageKeys | None = None
    """In clear; sealed before anything is stored."""
    properties: dict[str, str] = {}
    kind: CatalogKind = "INTERNAL"
    admins: tuple[str, ...] | None = None
    """Names of the principal roles that get `catalog_admin`; without any, `service_admin`."""
    connection: Connection | None = None
    """Of an external catalog that is federated; without secrets."""
    connection_secrets: ConnectionSecrets | None = None
    """In clear; sealed before anything is stored."""


async def create_catalog(directory: Directory, caller: Caller, wanted: NewCatalog) -> CatalogEntity:
    """Create it. `CatalogExists` when the name is taken, `LocationRefused` when a location is."""
    persistence = directory.shared.persistence
    committer = directory.committer(caller.realm)

    async def check(view: View) -> Guards:
        return await directory.authorize(caller, ops.CREATE_CATALOG, RealmTarget(caller.realm))

    found = await find_recalled(committer, caller, check=check, recall=RecalledCatalog())
    # Order: references, role, list, adopt, role again if it was swept.
    created = await _list_new(directory, caller, wanted) if found is None else found.result
    is_recalled = caller.key is not None and caller.key.is_recalled
    if is_recalled and not await _is_listed(await directory.read(caller.realm), created):
        return created
    await adopt_references(persistence.backend, _references(caller, created.id), persistence.clock)
    try:
        await ensure_catalog_admin(persistence, caller, created.id, wanted.admins)
    except NoSuchPrincipalRole:
        # It was there when the catalog was listed, and the catalog exists: as at the start of a server.
        await ensure_catalog_admin(persistence, caller, created.id)
    return created


async def _list_new(directory: Directory, caller: Caller, wanted: NewCatalog) -> CatalogEntity:
    """The new catalog with its references and role, in the list, but not adopted."""
    persistence = directory.shared.persistence
    realm = RealmTarget(caller.realm)
    # Before anything is made; and again when it is listed.
    await directory.authorize(caller, ops.CREATE_CATALOG, realm)
    end_rehearsal(caller)
    stable_id = persistence.ids.next()
    catalog_id = CatalogId(str(stable_id))
    async with refusing(directory.committer(caller.realm), caller, ops.CREATE_CATALOG.name):
        entity = _new_entity(directory, caller, wanted, catalog_id)
        key, id_key = encode_key(entity.name), encode_key(entity.id)
        await _require_possible(await directory.read(caller.realm), key, entity)
        await prepare_references(persistence.backend, _references(caller, entity.id), persistence.clock)
        await ensure_catalog_admin(persistence, caller, entity.id, wanted.admins)

    async def prepare(view: View) -> Prepared[CatalogEntity]:
        await _require_possible(view, key, entity)
        # The first version has the stable id as its own.
        value = ObjRef(stable_id, CATALOG.name).pack()
        change = Change(
            kind="catalog-created",
            index="names",
            key=key,
            after=value,
            detail=raw_detail({"id": entity.id, "name": entity.name}),
        )
        changes = {
            "names": {key: value},
            "ids": {id_key: key},
            "locations": {encode_key(*location.key()): entity.id.encode() for location in outermost(entity)},
        }
        return Prepared(entity, changes, [NewObject(CATALOG, stable_id, entity)], [change])

    return await directory.commit(caller, ops.CREATE_CATALOG, (realm,), prepare, RecalledCatalog())


def _new_entity(
    directory: Directory, caller: Caller, wanted: NewCatalog, catalog_id: CatalogId
) -> CatalogEntity:
    now_us = directory.shared.persistence.clock.now_us()
    owner = (caller.realm, catalog_id)
    if wanted.connection is not None and wanted.kind != "EXTERNAL":
        raise BadInput(
            "Only an external catalog has a connection",
            field="connectionConfigInfo",
            fix="Make the type EXTERNAL, or leave the connection out.",
        )
    entity = CatalogEntity(
        id=catalog_id,
        name=check_catalog_name(wanted.name),
        base_location=wanted.base_location,
        storage=directory.storages.seal(wanted.storage, wanted.storage_keys, owner),
        created_us=now_us,
        updated_us=now_us,
        properties=dict(wanted.properties),
        kind=wanted.kind,
        connected_to=UNSET
        if wanted.connection is None
        else directory.connections.seal(wanted.connection, wanted.connection_secrets, owner),
    )
    check_properties(entity.properties, directory.shared.settings.sizes)
    check_reserved(name for name in entity.properties if not is_federated_property(name))
    check_federated_properties(entity.properties, is_federated=entity.connection is not None)
    check_no_secrets(entity.properties)
    check_locations(entity)
    if entity.connection is not None:
        check_warehouse(entity.connection, entity.base_location)
    return entity


def _references(caller: Caller, catalog: CatalogId) -> list[RefKey]:
    return [catalog_reference(caller.realm, catalog, name) for name in CATALOG_REFERENCES]


async def _is_listed(view: View, catalog: CatalogEntity) -> bool:
    return await view.find("ids", encode_key(catalog.id)) is not None


async def _require_possible(view: View, key: bytes, entity: CatalogEntity) -> None:
    """Also asked before any reference is made, so that what cannot be leaves nothing behind."""
    if await view.find("names", key) is not None:
        raise CatalogExists(entity.name)
    await require_unclaimed(view, outermost(entity), entity.id)
