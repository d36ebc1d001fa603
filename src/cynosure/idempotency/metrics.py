"""What the idempotency room counts."""

from cynosure.common.telemetry.metrics import Counter

RESERVED = Counter("idempotency", "reserved", "Keys that came for the first time.")
REPLAYED = Counter("idempotency", "replayed", "Requests answered with what an earlier attempt was told.")
CONFLICTS = Counter("idempotency", "conflicts", "Keys refused because they stand for another payload.")
IN_PROGRESS = Counter(
    "idempotency", "in_progress", "Requests told that an earlier attempt is still in progress."
)
FOUND_APPLIED = Counter(
    "idempotency", "reconciled_applied", "Requests that an earlier attempt had committed and not noted (R1)."
)
TAKEN_OVER = Counter(
    "idempotency",
    "reconciled_taken_over",
    "Requests that an earlier attempt had left undone, executed by a later one (R2).",
)
EXPIRED = Counter("idempotency", "expired", "Keys that came again after their record had expired.")
CLEANED = Counter("idempotency", "cleaned", "Expired records that were removed.")
