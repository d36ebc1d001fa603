"""A dropped table that can be restored, for services that must leave its files alone.

Must not break: an answer with credentials says that it must not be stored.
"""

from msgspec import Raw, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.dropped import parse_drop_id
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access_delegation import DESCRIBED, delegation_of
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.load_dropped import LoadedDropped, load_dropped


class LoadDroppedResponse(Struct, frozen=True, rename="kebab"):
    """A dropped table, with its last version and access to its files, to read them."""

    entity_id: str
    table_uuid: str
    location: str
    places: tuple[str, ...]
    """All that it holds."""
    metadata_location: str
    metadata: Raw
    config: dict[str, str]
    storage_credentials: list[wire.StorageCredential] = []


def dropped_table_route(catalogs: Catalogs) -> Route:
    """The route of a dropped table."""

    async def load(request: Request) -> Response:
        caller = caller_of(request)
        drop_id = parse_drop_id(request.params["id"])
        catalog = await catalog_of(catalogs, caller, request)
        loaded = await load_dropped(catalog, caller, drop_id, delegation=delegation_of(request))
        return Response.json(_to_wire(loaded), headers=[NO_STORE])

    return Route(
        "GET",
        f"{BASE}/cynosure/v1/{{prefix}}/dropped/{{id}}",
        load,
        operation_id="loadDropped",
        summary="A dropped table that can be restored, with access to its files",
        tags=("cynosure",),
        headers=DESCRIBED,
        responses={200: LoadDroppedResponse},
    )


def _to_wire(loaded: LoadedDropped) -> LoadDroppedResponse:
    access, state = loaded.access, loaded.table.state
    credentials = () if access.vended is None else access.vended.credentials
    return LoadDroppedResponse(
        entity_id=str(loaded.dropped.entity_id),
        table_uuid=state.table_uuid,
        location=loaded.dropped.location,
        places=loaded.dropped.places,
        metadata_location=state.metadata_location,
        metadata=Raw(loaded.table.answer().metadata),
        config=dict(access.config),
        storage_credentials=[wire.StorageCredential(each.prefix, dict(each.config)) for each in credentials],
    )
