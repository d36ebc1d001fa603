"""Metrics reports of clients: their stored form and where they are.

The reference `reports` of a catalog has them in an index of the same name: table's stable id, then report id,
so that the reports of one table stand together in the order of their arrival.

Must not break: a report is kept as the client sent it; nothing but its head is ever read.
"""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Committer, Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import ObjId

_BATCH: Final = 500


class MetricsReport(Stored, frozen=True):
    """One report as it was received."""

    id: ObjId
    table_id: ObjId
    """Stable id: a rename keeps the reports."""
    type: str
    received_us: int
    principal: str
    json: bytes
    snapshot_id: int | None = None


METRICS_REPORT = struct_type("metrics-report", MetricsReport)


def reports_committer(catalog: OpenCatalog) -> Committer:
    """The committer of the catalog's reports."""
    key = catalog_reference(catalog.realm, catalog.entity.id, "reports")
    return catalog.shared.persistence.committer(key)


def reports_prefix(table_id: ObjId) -> bytes:
    """What the keys of all reports of a table begin with."""
    return encode_id_key(table_id)


def report_key(table_id: ObjId, report_id: ObjId) -> bytes:
    """Key of a report."""
    return encode_id_key(table_id) + encode_id_key(report_id)


async def forget_reports(catalog: OpenCatalog, caller: Caller, table_id: ObjId) -> None:
    """Remove all reports of a table that is gone for good."""

    async def prepare(view: View) -> Prepared[int]:
        entries = await view.scan("reports", prefix=reports_prefix(table_id), limit=_BATCH)
        return Prepared(len(entries), {"reports": dict.fromkeys(key for key, _ in entries)})

    committer = reports_committer(catalog)
    while await commit_part(committer, caller, "forget-reports", prepare) == _BATCH:
        pass
