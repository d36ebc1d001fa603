"""How a remote is, as far as this process has asked it."""

from msgspec import Struct

from cynosure.federation.guard.breaker import BreakerState


class Health(Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """What is known of one remote. Times are those of this process; 0: never."""

    breaker: BreakerState
    retry_after_ms: int = 0
    """When it is left alone: how long still."""
    running: int = 0
    waiting: int = 0
    failures: int = 0
    """In a row, up to now."""
    last_success_ms: int = 0
    last_failure_ms: int = 0
    last_error: str | None = None
    """The kind of the last failure, never the remote's words."""


class Record(Struct):
    """What is remembered of the answers of one remote."""

    failures: int = 0
    last_success_us: int = 0
    last_failure_us: int = 0
    last_error: str | None = None

    def succeed(self, now_us: int) -> None:
        """It answered."""
        self.failures = 0
        self.last_success_us = now_us

    def fail(self, now_us: int, error: BaseException) -> None:
        """It did not."""
        self.failures += 1
        self.last_failure_us = now_us
        self.last_error = type(error).__name__
