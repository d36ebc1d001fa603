"""What the delegation room counts."""

from cynosure.common.telemetry.metrics import Counter, Gauge

ATTEMPTS = Counter("delegation", "attempts", "Attempts at tasks that were begun here.", labels=("type",))
ENDED = Counter(
    "delegation",
    "attempts_ended",
    "Attempts at tasks that ended here, by what became of them: success, retry, failure, lost, given_back.",
    labels=("type", "outcome"),
)
RUNNING = Gauge("delegation", "running", "Tasks that are worked on now.", labels=("type",))
LOST = Counter(
    "delegation", "lost_leases", "Tasks taken over here from workers that said nothing for too long."
)
QUEUE_AGE = Gauge(
    "delegation",
    "queue_age_seconds",
    "How long the oldest task that could be worked on has waited.",
    combine="max",
)
FILES_DELETED = Counter("delegation", "files_deleted", "Files that tasks have deleted.", labels=("type",))
BYTES_DELETED = Counter("delegation", "bytes_deleted", "Bytes of those files.", labels=("type",))
