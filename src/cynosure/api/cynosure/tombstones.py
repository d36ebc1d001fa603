"""Tables that are to be purged, for the service that does so.

Must not break: an answer with credentials says that it must not be stored.
"""

from functools import partial
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.object_ids import parse_object_id
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access import REFRESH_KEYS, encode_credentials
from cynosure.api.iceberg.access_delegation import DESCRIBED, delegation_of
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.end_purging import end_purging
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.load_tombstone import (
    LoadedTombstone,
    load_tombstone,
    load_tombstone_credentials,
)
from cynosure.catalog.purging.tombstone import PurgeState, Tombstone
from cynosure.common.delegated.settings import PurgeMode
from cynosure.common.errors import BadInput
from cynosure.persistence.spi import ObjId

_MAX_TASK_ID_CHARS: Final = 64


class TombstoneSummary(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table that is to be purged."""

    entity_id: str
    drop_id: str
    """Names the drop: what `restoreDropped` takes."""
    state: PurgeState
    mode: PurgeMode
    task_id: str
    correlation_id: str
    namespace: tuple[str, ...]
    name: str
    location: str
    table_uuid: str
    metadata_location: str
    created_ms: int
    principal: str
    is_given_up: bool = False
    """Nothing will be purged: it waits for its name to be free again, or to be restored."""
    purging_ms: int = 0
    last_error: str = ""


class ListTombstonesResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listTombstones."""

    tombstones: list[TombstoneSummary]
    next_page_token: str | None = None


class LoadTombstoneResponse(TombstoneSummary, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """A tombstone with its table and access to its files."""

    places: tuple[str, ...]
    """All that the table holds to itself; nothing else may be deleted."""
    metadata: Raw
    config: dict[str, str]
    storage_credentials: list[wire.StorageCredential] = []


class PurgingRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Which task it is about."""

    task_id: str


class PurgingResponse(Struct, frozen=True):
    """The state a tombstone has now."""

    state: PurgeState


class TombstoneHandlers:
    """The handlers of tombstones."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """What is to be purged."""
        caller = caller_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        query: wire.ListQuery = request.query
        size = query.page_size or catalog.shared.settings.page_size
        page = await list_tombstones(catalog, caller, size=size, token=query.page_token or None)
        tombstones = [_summary(each) for each in page.entries]
        return Response.json(ListTombstonesResponse(tombstones, page.next_token))

    async def load(self, request: Request) -> Response:
        """One of them, with its table."""
        caller = caller_of(request)
        entity_id = _parse_id(request.params["id"])
        catalog = await catalog_of(self._catalogs, caller, request)
        loaded = await load_tombstone(catalog, caller, entity_id, delegation=delegation_of(request))
        return Response.json(_to_wire(loaded, request.params["prefix"]), headers=[NO_STORE])

    async def credentials(self, request: Request) -> Response:
        """Newer credentials for its files."""
        caller = caller_of(request)
        entity_id = _parse_id(request.params["id"])
        catalog = await catalog_of(self._catalogs, caller, request)
        vended = await load_tombstone_credentials(catalog, caller, entity_id)
        return Response(200, encode_credentials(vended), headers=[NO_STORE])

    async def begin(self, request: Request) -> Response:
        """Let its files be deleted."""
        caller = caller_of(request)
        entity_id, task_id = _parse_id(request.params["id"]), _parse_task(request.body)
        catalog = await catalog_of(self._catalogs, caller, request)
        return Response.json(PurgingResponse(await begin_purging(catalog, caller, entity_id, task_id)))

    async def end(self, request: Request) -> Response:
        """Look at its task now."""
        caller = caller_of(request)
        entity_id, task_id = _parse_id(request.params["id"]), _parse_task(request.body)
        catalog = await catalog_of(self._catalogs, caller, request)
        await end_purging(catalog, caller, entity_id, task_id)
        return Response(202)


def _parse_id(text: str) -> ObjId:
    return parse_object_id(text, of="table", fix="Take it from the order, or from the list of tombstones.")


def _parse_task(body: PurgingRequest) -> str:
    if not 0 < len(body.task_id) <= _MAX_TASK_ID_CHARS:
        raise BadInput(
            "Not the id of a task", field="task-id", fix="Take it from the task that is to purge the table."
        )
    return body.task_id


def _summary(tombstone: Tombstone) -> TombstoneSummary:
    return TombstoneSummary(
        entity_id=str(tombstone.entity_id),
        drop_id=str(tombstone.drop_id),
        state=tombstone.state,
        mode=tombstone.mode,
        task_id=tombstone.task_id,
        correlation_id=tombstone.correlation_id,
        namespace=tombstone.path[:-1],
        name=tombstone.path[-1],
        location=tombstone.location,
        table_uuid=tombstone.table_uuid,
        metadata_location=tombstone.metadata_location,
        created_ms=tombstone.created_us // 1_000,
        principal=tombstone.principal,
        is_given_up=tombstone.is_given_up,
        purging_ms=tombstone.purging_us // 1_000,
        last_error=tombstone.last_error,
    )


def _to_wire(loaded: LoadedTombstone, prefix: str) -> LoadTombstoneResponse:
    access, tombstone = loaded.access, loaded.tombstone
    config = dict(access.config)
    credentials = () if access.vended is None else access.vended.credentials
    refresh = f"cynosure/v1/{quote(prefix, safe='')}/tombstones/{tombstone.entity_id}/credentials"
    for credential in credentials[:1]:
        config.update(credential.config)
        config.update({key: refresh for own, key in REFRESH_KEYS.items() if own in credential.config})
    return LoadTombstoneResponse(
        **msgspec.structs.asdict(_summary(tombstone)),
        places=loaded.dropped.places,
        metadata=Raw(loaded.table.answer().metadata),
        config=config,
        storage_credentials=[wire.StorageCredential(each.prefix, dict(each.config)) for each in credentials],
    )


def tombstone_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of tombstones."""
    handlers = TombstoneHandlers(catalogs)
    route = partial(Route, tags=("cynosure",))
    many = f"{BASE}/cynosure/v1/{{prefix}}/tombstones"
    one = f"{many}/{{id}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listTombstones",
            summary="List the dropped tables whose files are to go",
            query=wire.ListQuery,
            responses={200: ListTombstonesResponse},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadTombstone",
            summary="Load a dropped table whose files are to go, with access to them",
            headers=DESCRIBED,
            responses={200: LoadTombstoneResponse},
        ),
        route(
            "GET",
            f"{one}/credentials",
            handlers.credentials,
            operation_id="loadTombstoneCredentials",
            summary="Newer credentials for the files of a dropped table",
            responses={200: wire.LoadCredentialsResponse},
        ),
        route(
            "POST",
            f"{one}/purging",
            handlers.begin,
            operation_id="beginPurging",
            summary="Let the files of a dropped table be deleted: it cannot be restored from then on",
            request=PurgingRequest,
            responses={200: PurgingResponse},
            # It needs no key: the same task may ask again, and hears the same.
            changes_nothing=True,
        ),
        route(
            "POST",
            f"{one}/ended",
            handlers.end,
            operation_id="endPurging",
            summary="Tell that the task of a purge has ended, for the catalog to look at it now",
            request=PurgingRequest,
            responses={202: None},
            changes_nothing=True,
        ),
    ]
