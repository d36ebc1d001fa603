"""What the broker counts."""

from cynosure.common.telemetry.metrics import Counter, Gauge

STREAMS = Gauge("query", "scan_streams", "Scans on executors that hold a stream to this gateway.")
REFUSED = Counter(
    "query",
    "scan_streams_refused",
    "Connections to the broker that got no task: no_hello, bad_token, old_attempt, places, crowd.",
    labels=("reason",),
)
FRAGMENTS = Counter(
    "query",
    "scan_fragments",
    "Attempts at fragments that ended: done, left, failed, lost, stuck, fenced, closed, stopped.",
    labels=("outcome",),
)
PROBES_FAILED = Counter(
    "query", "scan_probes_failed", "Scans that beat and did not move for too long, and were ended."
)
WORKERS = Gauge("query", "scan_workers", "Executors that are known.", combine="max")
WORKERS_HEALTHY = Gauge("query", "scan_workers_healthy", "Executors that are healthy.", combine="max")
