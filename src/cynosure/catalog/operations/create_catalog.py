"""Create a catalog.

Order as in `persistence.scopes`: its references first, then the entry in the realm's list, then the
references are adopted. A crash in between leaves what the repairer removes or completes.
"""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG, CatalogEntity
from cynosure.catalog.errors import CatalogExists
from cynosure.catalog.listed import check_catalog_name, check_locations, outermost, require_unclaimed
from cynosure.catalog.properties import check_properties
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import CATALOG_REFERENCES, catalog_reference
from cynosure.persistence.scopes import adopt_references, prepare_references
from cynosure.persistence.spi import CatalogId
from cynosure.persistence.store import NewObject
from cynosure.storage.config import S3Keys, StorageConfig


class NewCatalog(Struct, frozen=True, kw_only=True):
    """A catalog to be created."""

    name: str
    base_location: str
    storage: StorageConfig
    s3_keys: S3Keys | None = None
    """In clear; sealed before anything is stored."""
    properties: dict[str, str] = {}


async def create_catalog(directory: Directory, caller: Caller, wanted: NewCatalog) -> CatalogEntity:
    """Create it. `CatalogExists` when the name is taken, `LocationRefused` when a location is."""
    persistence = directory.shared.persistence
    stable_id = persistence.ids.next()
    catalog_id = CatalogId(str(stable_id))
    now_us = persistence.clock.now_us()
    entity = CatalogEntity(
        id=catalog_id,
        name=check_catalog_name(wanted.name),
        base_location=wanted.base_location,
        storage=directory.files.seal(wanted.storage, wanted.s3_keys, (caller.realm, catalog_id)),
        created_us=now_us,
        updated_us=now_us,
        properties=dict(wanted.properties),
    )
    check_properties(entity.properties, directory.shared.settings.sizes)
    check_locations(entity)
    claimed = outermost(entity)
    key, id_key = encode_key(entity.name), encode_key(entity.id)

    async def prepare(view: View) -> Prepared[CatalogEntity]:
        if await view.find("names", key) is not None:
            raise CatalogExists(entity.name)
        await require_unclaimed(view, claimed, entity.id)
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
            "locations": {encode_key(*location.key()): entity.id.encode() for location in claimed},
        }
        return Prepared(entity, changes, [NewObject(CATALOG, stable_id, entity)], [change])

    references = [catalog_reference(caller.realm, entity.id, name) for name in CATALOG_REFERENCES]
    # Order: references, list, adopt.
    await prepare_references(persistence.backend, references, persistence.clock)
    created = await directory.commit(caller, "create-catalog", prepare)
    await adopt_references(persistence.backend, references, persistence.clock)
    return created
