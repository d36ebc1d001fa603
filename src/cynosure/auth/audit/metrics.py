"""What the audit counts."""

from cynosure.common.telemetry.metrics import Counter, Gauge

EVENTS = Counter("audit", "events", "Events told from commits and appended to the audit.")
GAPS = Counter("audit", "gaps", "Gaps: changes of which no account was left when they were to be told.")
DENIALS = Counter(
    "audit", "denials", "Refusals, by kind: of known callers, or of strangers.", labels=("kind",)
)
SUPPRESSED = Counter(
    "audit", "denials_suppressed", "Refusals beyond the limit: counted in the audit, not listed."
)
UNWRITTEN = Counter(
    "audit",
    "denials_unwritten",
    "Refusals that could not be written to the audit in time; they are in the log.",
)
QUERIES = Counter("audit", "queries", "Statements that trusted services told of.")
DELIVERED = Counter("audit", "sink_events", "Events that a sink has taken.", labels=("sink",))
SINK_FAILURES = Counter(
    "audit", "sink_failures", "Deliveries that failed; each is tried again.", labels=("sink",)
)
SINK_LAG = Gauge(
    "audit",
    "sink_lag_seconds",
    "Age of the oldest event that a sink has not taken; 0 when it has taken all.",
    labels=("sink",),
    combine="max",
)
