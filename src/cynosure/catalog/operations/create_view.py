"""Create a view."""

import uuid

from msgspec import Raw, Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, changer_of, claim, places_of
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.view_versions import ViewVersion, export_view
from cynosure.catalog.locations import default_location
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import load_namespace, require_free_name, require_open
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.views import new_view, read_version
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key


class CreateView(Struct, frozen=True):
    """What a client wants created."""

    name: Identifier
    schema: Raw
    version: Raw
    location: str | None = None
    properties: dict[str, str] = {}


async def create_view(catalog: OpenCatalog, caller: Caller, wanted: CreateView) -> ViewState:
    """Create it. `ViewExists` or `TableExists` when the name is taken."""
    persistence = catalog.shared.persistence
    schema, version = read_schema(wanted.schema), read_version(wanted.version)
    check_reserved(wanted.properties)
    entity_id = persistence.ids.next()
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[Version[ViewState]]:
            await require_open(view)
            namespace = await load_namespace(view, wanted.name.namespace)
            await require_free_name(view, wanted.name, for_view=True)
            text = wanted.location or default_location(catalog, namespace, wanted.name, entity_id)
            places = places_of(catalog, text, wanted.properties)
            metadata = new_view(
                view_uuid=str(uuid.UUID(int=persistence.rng.getrandbits(128), version=4)),
                location=text.rstrip("/"),
                schema=schema,
                version=version,
                properties=wanted.properties,
                now_ms=persistence.clock.now_us() // 1000,
                limits=catalog.limits,
            )
            claimed = await claim(view, changer_of(catalog, caller, entity_id), places)
            created = await export_view(catalog, export, metadata, entity_id=entity_id, claims=claimed.claims)
            return prepared_creation(wanted.name, created, claimed)

        target = catalog.namespace(wanted.name.namespace)
        recall = RecalledVersion(VIEW)
        state = (await catalog.commit(caller, ops.CREATE_VIEW, (target,), prepare, recall)).result.value
        export.keep(state.metadata_location)
    return state


def prepared_creation(
    name: Identifier, created: ViewVersion, claimed: Claimed
) -> Prepared[Version[ViewState]]:
    """The change that makes a first version a view of this name."""
    key, entity_id = view_key(name), created.state.id
    changes: Changes = {"names": {key: created.value}, "ids": {encode_id_key(entity_id): key}}
    merge(changes, claimed.changes)
    detail = raw_detail({"id": entity_id, "path": (*name.namespace, name.name)})
    feed = Change(kind="view-created", index="names", key=key, after=created.value, detail=detail)
    return Prepared(Version(created.ref, created.state), changes, [created.new], [feed])
