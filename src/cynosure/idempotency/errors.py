"""What the idempotency room refuses."""

from cynosure.common.errors import CynosureError, OutcomeUnknown


class RequestInProgress(CynosureError):
    """Another attempt at the same request has not ended yet. This one did nothing."""

    def __init__(self) -> None:
        super().__init__(
            "A request with this Idempotency-Key is in progress",
            fix="Repeat the same request with the same key after a while.",
        )


class CommitInProgress(OutcomeUnknown):
    """As `RequestInProgress`, to a commit.

    Iceberg's Java client takes any 409 to a commit for a refusal, and deletes the files that it wrote for it.
    That its outcome is unknown is the truth, and it keeps them.
    """

    def __init__(self) -> None:
        super().__init__(
            "A commit with this Idempotency-Key is in progress",
            fix="Repeat the same request with the same key after a while.",
        )
