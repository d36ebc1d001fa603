"""Keep a client's report about a scan or commit; the oldest ones of the table make room for it."""

from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import (
    METRICS_REPORT,
    MetricsReport,
    report_key,
    reports_committer,
    reports_prefix,
)
from cynosure.catalog.resolve import require_table_ref
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Prepared, Request, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject

_MAX_REPORT_BYTES: Final = 2**20


class Report(Struct, frozen=True):
    """A report as it came: any JSON object with a type."""

    type: str
    json: bytes
    snapshot_id: int | None = None


async def report_metrics(catalog: OpenCatalog, caller: Caller, table: Identifier, report: Report) -> None:
    """Keep a report about this table; `NoSuchTable` when there is none."""
    if len(report.json) > _MAX_REPORT_BYTES:
        raise BadInput(
            "The report is too large", field="body", fix="Report less.", max_bytes=_MAX_REPORT_BYTES
        )
    state = await catalog.read()
    table_id, _ = await load_identity(state, await require_table_ref(state, table))
    kept = catalog.shared.settings.reports_kept
    if kept == 0:
        return
    persistence = catalog.shared.persistence

    async def prepare(view: View) -> Prepared[None]:
        # Found first, so that they are the oldest: ids grow with time.
        known = await view.scan("reports", prefix=reports_prefix(table_id), limit=2 * kept)
        changes: dict[bytes, bytes | None] = {key: None for key, _ in known[: max(0, len(known) + 1 - kept)]}
        value = MetricsReport(
            id=persistence.ids.next(),
            table_id=table_id,
            type=report.type,
            received_us=persistence.clock.now_us(),
            principal=caller.principal,
            json=report.json,
            snapshot_id=report.snapshot_id,
        )
        changes[report_key(table_id, value.id)] = ObjRef(value.id, METRICS_REPORT.name).pack()
        return Prepared(None, {"reports": changes}, [NewObject(METRICS_REPORT, value.id, value)])

    request = Request(prepare, caller.principal, operation="report-metrics", request_id=caller.request_id)
    await reports_committer(catalog).commit(request)
