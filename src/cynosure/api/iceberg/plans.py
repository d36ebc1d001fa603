"""Scan planning of the Iceberg REST protocol, and signatures that are bound to a plan.

Must not break: files come from the operation as JSON and are joined here; no handler decodes them.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from cynosure.api.catalogs import Catalogs
from cynosure.api.errors import ErrorEnvelope, ErrorModel, describe, get_answer
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access import signing_config, table_path
from cynosure.api.iceberg.access_delegation import DESCRIBED, delegation_of
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.iceberg.signing import NOT_KEPT, RemoteSignRequest, RemoteSignResult, store_request_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.cancel_plan import cancel_plan
from cynosure.catalog.operations.fetch_plan import fetch_plan
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.operations.sign_planned import sign_planned
from cynosure.catalog.planning.access import PlanAccess
from cynosure.catalog.planning.opening import Asking, Planned, Tasks
from cynosure.catalog.planning.request import ScanRequest
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.idempotency.keys import HEADER, MAX_LENGTH, PATTERN

_VERSION_HEADER: Final = b"x-client-version"
_JAVA: Final = "Apache Iceberg"
"""How Iceberg's Java client begins its version. It reads bounds in no form but its own."""
_NOT_KEYED: Final = {HEADER: {"type": "string", "pattern": PATTERN, "minLength": 1, "maxLength": MAX_LENGTH}}
"""Taken, and without effect: to repeat these requests is harmless."""

Predicate = Annotated[Raw, Meta(extra_json_schema={"type": ["object", "boolean"]})]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class PlanTableScanRequest(Struct, frozen=True, rename="kebab"):
    """Body of planTableScan."""

    snapshot_id: Int64 | None = None
    select: list[str] | None = None
    filter: Predicate | UnsetType = UNSET
    min_rows_requested: Int64 | None = None
    case_sensitive: bool | None = None
    use_snapshot_schema: bool | None = None
    start_snapshot_id: Int64 | None = None
    end_snapshot_id: Int64 | None = None
    stats_fields: list[str] | None = None


class FetchScanTasksRequest(Struct, frozen=True, rename="kebab"):
    """Body of fetchScanTasks."""

    plan_task: str


class FileScanTask(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A file to read."""

    data_file: wire.Document
    delete_file_references: list[int] | None = None
    residual_filter: Predicate | UnsetType = UNSET


class ScanTasks(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of fetchScanTasks."""

    file_scan_tasks: list[FileScanTask] | None = None
    delete_files: list[wire.Document] | None = None
    plan_tasks: list[str] | None = None
    read_restrictions: wire.Document | UnsetType = UNSET
    """Beyond the protocol: what the reader has to apply, as in the answer of loadTable."""


class PlanningResult(ScanTasks, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """Answer of planTableScan and fetchPlanningResult."""

    status: Literal["completed", "submitted", "cancelled", "failed"]
    plan_id: str | None = None
    storage_credentials: list[wire.StorageCredential] | None = None
    error: ErrorModel | None = None


class PlanHandlers:
    """The handlers of scan plans."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def plan(self, request: Request) -> Response:
        """Plan a scan."""
        caller, table = caller_of(request), table_of(request)
        body: PlanTableScanRequest = request.body
        wanted = ScanRequest(
            snapshot_id=body.snapshot_id,
            select=_names(body.select),
            filter=Raw(b"") if body.filter is UNSET else body.filter,
            min_rows_requested=body.min_rows_requested,
            case_sensitive=body.case_sensitive is not False,
            use_snapshot_schema=bool(body.use_snapshot_schema),
            start_snapshot_id=body.start_snapshot_id,
            end_snapshot_id=body.end_snapshot_id,
            stats_fields=_names(body.stats_fields),
        )
        catalog = await self._open(request)
        planned = await plan_scan(catalog, caller, table, wanted, _asking(request))
        return _answer(request, table, planned, with_id=True)

    async def fetch(self, request: Request) -> Response:
        """What has become of a plan."""
        caller, table = caller_of(request), table_of(request)
        catalog = await self._open(request)
        plan_id = request.params["plan-id"]
        return _answer(request, table, await fetch_plan(catalog, caller, table, plan_id, _asking(request)))

    async def cancel(self, request: Request) -> Response:
        """End a plan."""
        caller, table = caller_of(request), table_of(request)
        await cancel_plan(await self._open(request), caller, table, request.params["plan-id"])
        return Response(204)

    async def fetch_tasks(self, request: Request) -> Response:
        """The files of a plan task."""
        caller, table = caller_of(request), table_of(request)
        body: FetchScanTasksRequest = request.body
        catalog = await self._open(request)
        tasks = await fetch_scan_tasks(catalog, caller, table, body.plan_task, _asking(request).bound_form)
        return Response(200, b"{%b}" % b",".join(_members(tasks)))

    async def sign(self, request: Request) -> Response:
        """Sign a request that reads a file of a plan."""
        caller, table = caller_of(request), table_of(request)
        wanted = store_request_of(request.body)
        catalog = await self._open(request)
        signed = await sign_planned(catalog, caller, table, request.params["plan-id"], wanted)
        return Response.json(RemoteSignResult(signed.uri, dict(signed.headers)), headers=[NOT_KEPT])

    async def _open(self, request: Request) -> OpenCatalog:
        return await catalog_of(self._catalogs, caller_of(request), request)


def _names(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _asking(request: Request) -> Asking:
    is_java = (request.find_header(_VERSION_HEADER) or "").startswith(_JAVA)
    return Asking(delegation_of(request), BoundForm.BINARY if is_java else BoundForm.TYPED)


def _answer(request: Request, table: Identifier, planned: Planned, *, with_id: bool = False) -> Response:
    plan_id = b'"plan-id":%b' % msgspec.json.encode(planned.plan_id)
    named = [plan_id] if with_id else []
    if planned.error is not None:
        answer = get_answer(type(planned.error))
        error = ErrorModel(describe(planned.error, answer, request.request_id), answer.type, answer.status)
        envelope = msgspec.json.encode(ErrorEnvelope(error))
        return Response(200, b'{"status":"failed",%b' % envelope[1:])
    if planned.is_cancelled:
        return Response(200, b'{"status":"cancelled"}')
    if planned.tasks is None:
        return Response(200, b"{%b}" % b",".join([b'"status":"submitted"', *named]))
    members = [b'"status":"completed"', *named]
    credentials = (
        [] if planned.access is None else _credentials(request, table, planned.plan_id, planned.access)
    )
    if credentials:
        members.append(b'"storage-credentials":%b' % msgspec.json.encode(credentials))
    headers = [NO_STORE] if credentials else []
    return Response(200, b"{%b}" % b",".join([*members, *_members(planned.tasks)]), headers=headers)


def _members(tasks: Tasks) -> list[bytes]:
    members = [_array(b"file-scan-tasks", tasks.files)]
    if tasks.delete_files:
        members.append(_array(b"delete-files", tasks.delete_files))
    if tasks.plan_tasks:
        members.append(b'"plan-tasks":%b' % msgspec.json.encode(tasks.plan_tasks))
    if tasks.restrictions is not None:
        members.append(b'"read-restrictions":%b' % tasks.restrictions)
    return members


def _array(name: bytes, items: Sequence[bytes]) -> bytes:
    return b'"%b":[%b]' % (name, b",".join(items))


def _credentials(
    request: Request, table: Identifier, plan_id: str, given: PlanAccess
) -> list[wire.StorageCredential]:
    access, prefix = given.access, request.params["prefix"]
    if access.vended is not None:
        # Iceberg's Java client makes the reader of a plan from these alone, without the table's `config`.
        return [
            wire.StorageCredential(each.prefix, {**access.config, **each.config})
            for each in access.vended.credentials
        ]
    if not access.is_signed:
        return []
    # Our own beside the protocol's path of the table: it signs for the files of this plan only.
    path = f"cynosure/{table_path(prefix, table)}/plan/{plan_id}"
    config = {**access.config, **signing_config(path)}
    return [wire.StorageCredential(place, config) for place in given.places]


def plan_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of scan plans."""
    handlers = PlanHandlers(catalogs)
    # To repeat one of these does no harm, so that none needs an Idempotency-Key.
    route = partial(Route, tags=("iceberg",), changes_nothing=True)
    table = "{prefix}/namespaces/{namespace}/tables/{table}"
    one = f"{BASE}/v1/{table}/plan/{{plan-id}}"
    return [
        route(
            "POST",
            f"{BASE}/v1/{table}/plan",
            handlers.plan,
            operation_id="planTableScan",
            summary="Plan a scan of a table",
            request=PlanTableScanRequest,
            headers={**DESCRIBED, **_NOT_KEYED},
            responses={200: PlanningResult},
        ),
        route(
            "GET",
            one,
            handlers.fetch,
            operation_id="fetchPlanningResult",
            summary="What has become of a plan",
            headers=DESCRIBED,
            responses={200: PlanningResult},
        ),
        route(
            "DELETE",
            one,
            handlers.cancel,
            operation_id="cancelPlanning",
            summary="Cancel a plan",
            headers={**DESCRIBED, **_NOT_KEYED},
            responses={204: None},
        ),
        route(
            "POST",
            f"{BASE}/v1/{table}/tasks",
            handlers.fetch_tasks,
            operation_id="fetchScanTasks",
            summary="The files of a plan task",
            request=FetchScanTasksRequest,
            headers=_NOT_KEYED,
            responses={200: ScanTasks},
        ),
        Route(
            "POST",
            f"{BASE}/cynosure/v1/{table}/plan/{{plan-id}}/sign",
            handlers.sign,
            operation_id="signPlannedRequest",
            changes_nothing=True,
            summary="Sign a request that reads a file of a plan",
            tags=("cynosure",),
            request=RemoteSignRequest,
            responses={200: RemoteSignResult},
        ),
    ]
