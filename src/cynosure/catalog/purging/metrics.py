"""What purges count."""

from cynosure.common.telemetry.metrics import Counter

PURGES = Counter(
    "catalog",
    "purges",
    "Drops with purge, by what became of them: ordered, dropped, lifted (the table is there again), given_up"
    " (it could not be put back), failed (some files are gone, or nobody was promised it back).",
    labels=("outcome",),
)
