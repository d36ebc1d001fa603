"""Keep a client's report about a scan or commit; the oldest ones of the table make room for it."""

from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_as, end_rehearsal
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.guards import Guards
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
from cynosure.catalog.resolve import find_table_ref, require_table_ref
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

_MAX_REPORT_BYTES: Final = 2**20
_SCAN_REPORT: Final = "scan-report"
"""Whatever is not one needs the right to write: the stricter of the two."""


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
    operation = ops.REPORT_SCAN if report.type == _SCAN_REPORT else ops.REPORT_COMMIT
    target = catalog.table(table)
    kept = catalog.shared.settings.reports_kept
    persistence = catalog.shared.persistence

    async def resolve() -> tuple[ObjId, Guards]:
        state = await catalog.read()
        guards = await catalog.authorize(state, caller, operation, target)
        return (await load_identity(state, await require_table_ref(state, table)))[0], guards

    async def check(view: View) -> Guards:
        # The view is of the reports; the table, and who may report about it, is in the catalog's own state.
        if await find_table_ref(await catalog.read(), table) is None:
            # Also where existence is hidden: whoever reported about it before knew of it.
            raise NoSuchTable(str(table))
        return (await resolve())[1]

    if kept == 0:
        await resolve()
        end_rehearsal(caller)
        return

    async def prepare(view: View) -> Prepared[None]:
        table_id, guards = await resolve()
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
        return Prepared(
            None, {"reports": changes}, [NewObject(METRICS_REPORT, value.id, value)], guards=guards
        )

    committer = reports_committer(catalog)
    await commit_as(committer, caller, operation.name, prepare, check=check, recall=NOTHING)
