"""What was dropped and can be restored within the undrop window."""

from functools import partial

from msgspec import Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.object_ids import parse_object_id
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.dropped import DroppedEntity, Kind
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.purging.tombstone import PurgeState, Tombstone
from cynosure.common.errors import BadInput
from cynosure.persistence.spi import ObjId


class DroppedThing(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table, view or namespace that was dropped."""

    id: str
    """Names the drop; the same table may have been dropped before."""
    kind: Kind
    namespace: tuple[str, ...]
    """Of a table or view, where it was; of a namespace, itself."""
    entity_id: str
    dropped_ms: int
    restorable_until_ms: int
    principal: str
    name: str | None = None
    location: str = ""
    claims: tuple[str, ...] = ()
    """Further places that it holds."""
    purge: PurgeState | None = None
    """Of a table whose files are to go: whether it can still be restored."""
    task_id: str = ""
    """Of the task that purges it."""
    last_error: str = ""
    """What its purge failed with last."""


class ListDroppedResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listDropped."""

    dropped: list[DroppedThing]
    next_page_token: str | None = None


class RestoreRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Where to restore to; left out: where it was."""

    namespace: list[str] | None = None
    name: str | None = None


class RestoredThing(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Where something is now."""

    kind: Kind
    namespace: tuple[str, ...]
    name: str | None = None


class DroppedHandlers:
    """The handlers of dropped things."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """What can be restored, oldest first."""
        caller = caller_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        query: wire.ListQuery = request.query
        size = query.page_size or catalog.shared.settings.page_size
        page = await list_dropped(catalog, caller, size=size, token=query.page_token or None)
        dropped = [
            _to_wire(catalog, drop_id, entity, page.tombstones.get(drop_id))
            for drop_id, entity in page.entries
        ]
        return Response.json(ListDroppedResponse(dropped, page.next_token))

    async def restore(self, request: Request) -> Response:
        """Restore it."""
        caller = caller_of(request)
        drop_id = parse_drop_id(request.params["id"])
        catalog = await catalog_of(self._catalogs, caller, request)
        restored = await restore_dropped(catalog, caller, drop_id, path=_path_of(request.body))
        namespace, name = _split(restored)
        return Response.json(RestoredThing(restored.kind, namespace, name))


def parse_drop_id(text: str) -> ObjId:
    """The id of a drop in a path."""
    return parse_object_id(text, of="drop", fix="Take it from the list of dropped things.")


def _path_of(body: RestoreRequest) -> tuple[str, ...] | None:
    if body.namespace is None and body.name is None:
        return None
    if body.namespace is None:
        raise BadInput(
            "A new name needs its namespace", field="namespace", fix="Name the namespace to restore to."
        )
    return (*body.namespace, *([body.name] if body.name is not None else []))


def _split(entity: DroppedEntity) -> tuple[tuple[str, ...], str | None]:
    return (entity.path, None) if entity.kind == "namespace" else (entity.path[:-1], entity.path[-1])


def _to_wire(
    catalog: OpenCatalog, drop_id: ObjId, entity: DroppedEntity, tombstone: Tombstone | None
) -> DroppedThing:
    window = catalog.shared.persistence.settings.gc.undrop_window
    namespace, name = _split(entity)
    return DroppedThing(
        id=str(drop_id),
        kind=entity.kind,
        namespace=namespace,
        name=name,
        entity_id=str(entity.entity_id),
        dropped_ms=entity.dropped_us // 1000,
        restorable_until_ms=entity.dropped_us // 1000 + int(window.total_seconds() * 1000),
        principal=entity.principal,
        location=entity.location,
        claims=entity.claims,
        purge=None if tombstone is None else tombstone.state,
        task_id="" if tombstone is None else tombstone.task_id,
        last_error="" if tombstone is None else tombstone.last_error,
    )


def dropped_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of dropped things."""
    handlers = DroppedHandlers(catalogs)
    route = partial(Route, tags=("cynosure",))
    return [
        route(
            "GET",
            f"{BASE}/cynosure/v1/{{prefix}}/dropped",
            handlers.list,
            operation_id="listDropped",
            summary="List what was dropped and can be restored, oldest first",
            query=wire.ListQuery,
            responses={200: ListDroppedResponse},
        ),
        route(
            "POST",
            f"{BASE}/cynosure/v1/{{prefix}}/dropped/{{id}}/restore",
            handlers.restore,
            operation_id="restoreDropped",
            summary="Restore a dropped table, view or namespace",
            request=RestoreRequest,
            responses={200: RestoredThing},
        ),
    ]
