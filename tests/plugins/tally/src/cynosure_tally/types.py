"""An object type of this package: a report of counted calls that points to the report before it."""

from collections.abc import Iterable

from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId


class TallyReport(Stored, frozen=True):
    """Calls counted so far."""

    calls: dict[str, int]
    previous: ObjId | None = None


def _refs(report: TallyReport) -> Iterable[ObjRef]:
    return () if report.previous is None else (ObjRef(report.previous, "tally-report"),)


TALLY_REPORT = struct_type("tally-report", TallyReport, refs=_refs)
OBJECT_TYPES = (TALLY_REPORT,)
