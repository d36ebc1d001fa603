"""Maintenance of tables: what would run and why, what was run, and one task ordered now."""

from datetime import datetime
from functools import partial

from msgspec import UNSET, Struct, UnsetType, field

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.names import check_name, parse_namespace
from cynosure.catalog.policies.windows import to_datetime
from cynosure.catalog.upkeep.assess import Assessed, Decision
from cynosure.catalog.upkeep.list_maintenance import Kept, list_maintenance
from cynosure.catalog.upkeep.order_maintenance import Wanted, order_maintenance
from cynosure.catalog.upkeep.plan_maintenance import About, plan_maintenance
from cynosure.catalog.upkeep.runs import Run
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskType


class AboutQuery(wire.ListQuery, frozen=True, rename="camel"):
    """Which tables."""

    namespace: str | UnsetType = UNSET
    """Levels joined by the unit separator; with all namespaces below it."""
    table: str | UnsetType = UNSET
    """One table of the namespace."""

    def about(self) -> About:
        """What the operations understand."""
        return About(
            () if self.namespace is UNSET else parse_namespace(self.namespace),
            None if self.table is UNSET else check_name(self.table, field="table"),
        )


class PlanPolicy(Struct, frozen=True, rename="kebab"):
    """The policy behind an entry of the plan."""

    namespace: tuple[str, ...]
    name: str
    type: str
    attached_to: str
    """Kind, and the name of what it is attached to."""


class MaintenanceRun(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One task that was ordered."""

    task_id: str
    ordered_at: datetime
    outcome: str
    """`RUNNING`, `SUCCESS`, `FAILURE`, or `LOST` when the service does not know it."""
    ordered_by: str | None = None
    """Left out for the schedule."""
    due_at: datetime | None = None
    ended_at: datetime | None = None
    files_before: int | None = None
    files_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    files_deleted: int = 0
    bytes_deleted: int = 0
    summary: str | None = None


class PlanEntry(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One policy that counts for one table, and what it comes to."""

    namespace: tuple[str, ...]
    table: str
    operation: TaskType
    policy: PlanPolicy
    decision: Decision
    why: str
    schedule: str
    window: str
    due_at: datetime | None = None
    next_at: datetime | None = None
    """When it is looked at again."""
    task_id: str | None = None
    """Of the task under way."""
    numbers: dict[str, int | float] = field(default_factory=dict)
    """What the decision rests on."""
    instructions: dict[str, str] = field(default_factory=dict)
    """What the task is told."""
    notes: tuple[str, ...] = ()
    """What is not used of the policy."""
    last_run: MaintenanceRun | None = None


class MaintenancePlan(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of planMaintenance."""

    plan: list[PlanEntry]
    is_complete: bool
    """Whether all tables with policies were looked at."""
    next_page_token: str | None = None


class MaintainedTable(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One kind of maintenance of one table: its newest tasks, the newest first."""

    namespace: tuple[str, ...]
    table: str
    entity_id: str
    operation: TaskType
    runs: list[MaintenanceRun]
    is_gone: bool = False
    """Whether there is no such table any more."""


class MaintenanceRuns(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listMaintenanceRuns."""

    tables: list[MaintainedTable]
    next_page_token: str | None = None


class OrderRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of orderMaintenance."""

    operation: str
    """A kind of tasks, such as DATA_COMPACTION, in any spelling."""
    properties: dict[str, str] = field(default_factory=dict)
    """Instructions for the task."""


class MaintenanceHandlers:
    """The handlers of maintenance."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def plan(self, request: Request) -> Response:
        """What would run now, and why nothing else does."""
        caller = caller_of(request)
        query: AboutQuery = request.query
        about = query.about()
        catalog = await catalog_of(self._catalogs, caller, request)
        page = await plan_maintenance(catalog, caller, query.paging(), about)
        entries = [_entry(each) for each in page.entries]
        return Response.json(MaintenancePlan(entries, page.is_complete, page.next_token))

    async def runs(self, request: Request) -> Response:
        """What was run, and what became of it."""
        caller = caller_of(request)
        query: AboutQuery = request.query
        about = query.about()
        catalog = await catalog_of(self._catalogs, caller, request)
        page = await list_maintenance(catalog, caller, query.paging(), about)
        return Response.json(MaintenanceRuns([_kept(each) for each in page.entries], page.next_token))

    async def order(self, request: Request) -> Response:
        """Order one task for a table."""
        caller = caller_of(request)
        body: OrderRequest = request.body
        table = table_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        wanted = Wanted(body.operation, body.properties)
        return Response.json(await order_maintenance(catalog, caller, table, wanted), status=202)


def _entry(each: Assessed) -> PlanEntry:
    work, last = each.work, each.upkeep.last if each.upkeep else None
    attached = work.attached
    return PlanEntry(
        namespace=work.table.path.namespace,
        table=work.table.path.name,
        operation=work.rule.task_type,
        policy=PlanPolicy(
            namespace=attached.namespace,
            name=attached.name,
            type=attached.policy.type,
            attached_to=f"{attached.on_kind} {attached.on}".strip(),
        ),
        decision=each.decision,
        why=each.why,
        schedule=work.rule.schedule.text,
        window=str(work.rule.window),
        due_at=_time(each.due_us),
        next_at=_time(each.next_us),
        task_id=each.task_id or None,
        numbers=each.numbers,
        instructions=work.rule.instructions,
        notes=work.rule.notes,
        last_run=None if last is None else _run(last),
    )


def _kept(each: Kept) -> MaintainedTable:
    *namespace, name = each.path
    return MaintainedTable(
        namespace=tuple(namespace),
        table=name,
        entity_id=str(each.upkeep.table_id),
        operation=each.upkeep.task_type,
        runs=[_run(run) for run in each.upkeep.runs],
        is_gone=each.is_gone,
    )


def _run(run: Run) -> MaintenanceRun:
    return MaintenanceRun(
        task_id=run.task_id,
        ordered_at=to_datetime(run.ordered_us),
        outcome=run.outcome or "RUNNING",
        ordered_by=run.ordered_by or None,
        due_at=_time(run.slot_us),
        ended_at=_time(run.ended_us),
        files_before=run.measured.files_before,
        files_after=run.measured.files_after,
        bytes_before=run.measured.bytes_before,
        bytes_after=run.measured.bytes_after,
        files_deleted=run.files_deleted,
        bytes_deleted=run.bytes_deleted,
        summary=run.text or None,
    )


def _time(time_us: int | None) -> datetime | None:
    return to_datetime(time_us) if time_us else None


def maintenance_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of maintenance."""
    handlers = MaintenanceHandlers(catalogs)
    route = partial(Route, tags=("cynosure",))
    base = f"{BASE}/cynosure/v1/{{prefix}}"
    return [
        route(
            "GET",
            f"{base}/maintenance/plan",
            handlers.plan,
            operation_id="planMaintenance",
            summary="Say which maintenance would run now, and why all other does not",
            query=AboutQuery,
            responses={200: MaintenancePlan},
        ),
        route(
            "GET",
            f"{base}/maintenance/runs",
            handlers.runs,
            operation_id="listMaintenanceRuns",
            summary="List the maintenance that was run per table, with what became of it",
            query=AboutQuery,
            responses={200: MaintenanceRuns},
        ),
        route(
            "POST",
            f"{base}/namespaces/{{namespace}}/tables/{{table}}/maintenance",
            handlers.order,
            operation_id="orderMaintenance",
            summary="Order one task of maintenance for a table, now",
            request=OrderRequest,
            responses={202: TaskDetails},
        ),
    ]
