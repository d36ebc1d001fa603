"""Maintenance of the tables of one catalog: what would run, what was run, one task ordered.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct, field

from cynosure.client.api import ApiClient, segment
from cynosure.client.catalog import Namespace
from cynosure.client.changes import Keyed
from cynosure.common.delegated.record import TaskDetails

_BASE: Final = "/api/catalog/cynosure/v1"
_BETWEEN: Final = "\x1f"
_PAGE: Final = 1_000
_PLAN_S: Final = 100.0
"""Longer than a server lets a request take: it may read the manifests of many tables."""


class MaintenanceRun(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One task that was ordered."""

    task_id: str
    ordered_at: datetime
    outcome: str
    ordered_by: str | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None
    files_before: int | None = None
    files_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    files_deleted: int = 0
    bytes_deleted: int = 0
    summary: str | None = None


class PlanPolicy(Struct, frozen=True, rename="kebab"):
    """The policy behind an entry of the plan."""

    namespace: Namespace
    name: str
    type: str
    attached_to: str


class PlanEntry(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One policy that counts for one table, and what it comes to."""

    namespace: Namespace
    table: str
    operation: str
    policy: PlanPolicy
    decision: str
    why: str
    schedule: str
    window: str
    due_at: datetime | None = None
    next_at: datetime | None = None
    task_id: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    last_run: MaintenanceRun | None = None


class MaintainedTable(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One kind of maintenance of one table: its newest tasks, the newest first."""

    namespace: Namespace
    table: str
    entity_id: str
    operation: str
    runs: list[MaintenanceRun]
    is_gone: bool = False


class _PlanPage(Struct, rename="kebab"):
    plan: list[PlanEntry]
    is_complete: bool
    next_page_token: str | None = None


class _RunsPage(Struct, rename="kebab"):
    tables: list[MaintainedTable]
    next_page_token: str | None = None


class Plan(Struct, frozen=True, rename="kebab"):
    """What would run, and what would not."""

    plan: list[PlanEntry]
    is_complete: bool
    """Whether the server looked at all tables with policies."""


Page = TypeVar("Page", _PlanPage, _RunsPage)


class MaintenanceApi(Keyed):
    """Maintenance in one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._base = f"{_BASE}/{segment(catalog)}"

    async def plan(self, namespace: Namespace = (), table: str | None = None) -> Plan:
        """What would run now and why all else would not, for all tables or some."""
        pages = await self._pages("plan", _PlanPage, namespace, table)
        entries = [each for page in pages for each in page.plan]
        return Plan(entries, all(page.is_complete for page in pages))

    async def list_runs(self, namespace: Namespace = (), table: str | None = None) -> list[MaintainedTable]:
        """What was run, for all tables or some."""
        pages = await self._pages("runs", _RunsPage, namespace, table)
        return [each for page in pages for each in page.tables]

    async def order(
        self, namespace: Namespace, table: str, operation: str, properties: Mapping[str, str]
    ) -> TaskDetails:
        """Order one task for a table, now."""
        path = (
            f"{self._base}/namespaces/{segment(_BETWEEN.join(namespace))}/tables/{segment(table)}/maintenance"
        )
        body = {"operation": operation, "properties": properties}
        return (await self._change("POST", path, body=body)).decode(TaskDetails)

    async def _pages(
        self, what: str, page_type: type[Page], namespace: Namespace, table: str | None
    ) -> list[Page]:
        query = {"pageSize": str(_PAGE), "pageToken": ""}
        if namespace:
            query["namespace"] = _BETWEEN.join(namespace)
        if table is not None:
            query["table"] = table
        pages: list[Page] = []
        while True:
            reply = await self._api.request(
                "GET", f"{self._base}/maintenance/{what}", query=query, timeout_s=_PLAN_S
            )
            pages.append(reply.decode(page_type))
            if not pages[-1].next_page_token:
                return pages
            query["pageToken"] = pages[-1].next_page_token
