"""What is measured of statements."""

from typing import Final

from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram

STATEMENTS: Final = Counter(
    "query", "statements", "Statements that ended.", labels=("state", "engine", "reason")
)
SECONDS: Final = Histogram(
    "query", "statement_seconds", "Time of statements from their arrival to their end.", labels=("engine",)
)
ROWS: Final = Counter("query", "result_rows", "Rows of results.")
BYTES: Final = Counter("query", "planned_bytes", "Bytes of files planned to be read, where no policy hides.")
QUEUED: Final = Gauge("query", "queued", "Statements that wait for their turn.")
RUNNING: Final = Gauge("query", "running", "Statements that are worked on.")
FALLBACKS: Final = Counter("query", "fallbacks", "Statements that ran locally after distribution failed.")
MEMORY: Final = Gauge(
    "query", "memory_utilization_ratio", "Reserved memory of the local engine by its limit."
)
WATERMARKS: Final = Counter(
    "query", "memory_watermarks", "Statements that began, by the memory watermark.", labels=("level",)
)
UNRECORDED: Final = Counter("query", "audit_lost", "Audit events of statements that could not be recorded.")
