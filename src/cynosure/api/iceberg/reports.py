"""Metrics reports: the protocol's way in, and our own way to read them again."""

from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.decode import BodyDecoder
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.list_reports import list_reports
from cynosure.catalog.operations.report_metrics import Report, report_metrics

_MAX_INT64: Final = 2**63 - 1


class ReportHead(Struct, frozen=True, rename="kebab"):
    """All that is read of a report."""

    report_type: str
    snapshot_id: Any = None
    """Whatever a type we do not know calls so."""


class KeptReport(Struct, frozen=True, rename="kebab"):
    """A report and what is known about its arrival."""

    report_id: str
    received_ms: int
    principal: str
    report_type: str
    report: wire.Document
    snapshot_id: int | None = None


class ListReportsResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listReports."""

    reports: list[KeptReport]
    next_page_token: str | None = None


class ReportHandlers:
    """The handlers of metrics reports."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._heads = BodyDecoder(ReportHead)

    async def report(self, request: Request) -> Response:
        """Keep a report as it is."""
        caller = caller_of(request)
        table = table_of(request)
        json = bytes(request.body)
        head: ReportHead = self._heads.decode(json)
        snapshot_id = head.snapshot_id
        is_id = type(snapshot_id) is int and abs(snapshot_id) <= _MAX_INT64
        report = Report(head.report_type, json, snapshot_id if is_id else None)
        await report_metrics(await catalog_of(self._catalogs, caller, request), caller, table, report)
        return Response(204)

    async def list(self, request: Request) -> Response:
        """The reports kept of a table."""
        caller = caller_of(request)
        table = table_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        page = await list_reports(catalog, caller, table, request.query.paging())
        reports = [
            KeptReport(
                report_id=str(report.id),
                received_ms=report.received_us // 1000,
                principal=report.principal,
                report_type=report.type,
                report=Raw(report.json),
                snapshot_id=report.snapshot_id,
            )
            for report in page.reports
        ]
        return Response.json(ListReportsResponse(reports, page.next_token))


def report_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of metrics reports."""
    handlers = ReportHandlers(catalogs)
    route = partial(Route, tags=("iceberg",))
    table = "{prefix}/namespaces/{namespace}/tables/{table}"
    return [
        route(
            "POST",
            f"{BASE}/v1/{table}/metrics",
            handlers.report,
            operation_id="reportMetrics",
            summary="Report metrics of a scan or commit",
            request=wire.MetricsDocument,
            responses={204: None},
        ),
        Route(
            "GET",
            f"{BASE}/cynosure/v1/{table}/metrics",
            handlers.list,
            operation_id="listReports",
            summary="List the metrics reports kept of a table, oldest first",
            tags=("cynosure",),
            query=wire.ListQuery,
            responses={200: ListReportsResponse},
        ),
    ]
