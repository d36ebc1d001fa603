"""List the metrics reports kept of a table, oldest first."""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import Paging, choose_size
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import METRICS_REPORT, MetricsReport, reports_committer, reports_prefix
from cynosure.catalog.resolve import require_table_ref
from cynosure.persistence.listing import list_page
from cynosure.persistence.objects import ObjRef


class ReportPage(Struct, frozen=True):
    """Some of a table's reports."""

    reports: Sequence[MetricsReport]
    next_token: str | None


async def list_reports(catalog: OpenCatalog, caller: Caller, table: Identifier, paging: Paging) -> ReportPage:
    """One page of reports, also without a token; `NoSuchTable` when there is no such table."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.LIST_REPORTS, catalog.table(table))
    table_id, _ = await load_identity(state, await require_table_ref(state, table))
    page = await list_page(
        reports_committer(catalog),
        catalog.shared.persistence.page_tokens,
        index="reports",
        prefix=reports_prefix(table_id),
        size=choose_size(catalog, paging),
        token=paging.token or None,
    )
    ids = [ObjRef.unpack(value).id for _, value in page.entries]
    return ReportPage(await page.state.load_many(METRICS_REPORT, ids) if ids else (), page.next_token)
