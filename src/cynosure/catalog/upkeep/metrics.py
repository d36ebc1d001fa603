"""What maintenance counts."""

from cynosure.common.telemetry.metrics import Counter

TASKS = Counter(
    "catalog",
    "maintenance",
    "Tasks of maintenance, by what became of them: ordered (by schedule or by hand), refused by the"
    " delegation service, success, failure, lost.",
    labels=("type", "outcome"),
)
