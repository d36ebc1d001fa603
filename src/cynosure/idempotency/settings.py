"""Settings of the idempotency room."""

from datetime import timedelta

from msgspec import Struct

from cynosure.common.errors import Misconfigured
from cynosure.common.quantities import format_iso_duration
from cynosure.common.settings import Duration


class CleanupSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Removal of records nobody can ask for any more."""

    enabled: bool = True
    """Whether this server takes part in it. An expired record counts as unknown either way."""
    interval: Duration = timedelta(minutes=10)
    """How often one of all servers does it."""


class IdempotencySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The Idempotency-Key header."""

    enabled: bool = True
    """Whether keys are honoured and advertised. When false the header is ignored."""
    lifetime: Duration = timedelta(minutes=30)
    """How long a client may repeat a request with the same key; advertised to clients."""
    buffer: Duration = timedelta(minutes=5)
    """How much longer than advertised keys are kept, for clocks that differ and answers on their way."""
    lease: Duration = timedelta(seconds=10)
    """A request whose server has not renewed this claim for so long is given up for dead: whoever repeats it
    finds out what became of it. Renewed at a third of it."""
    wait: Duration = timedelta(seconds=30)
    """How long a repeated request waits for the first one to end before it is told that it is in progress."""
    cleanup: CleanupSettings = CleanupSettings()
    """See below."""

    @property
    def kept(self) -> timedelta:
        """How long keys and records are kept."""
        return self.lifetime + self.buffer


def advertise(settings: IdempotencySettings) -> dict[str, str]:
    """What clients are told, in the names and forms of the proposal that both sides follow."""
    if not settings.enabled:
        return {"idempotency-key-supported": "false"}
    return {
        "idempotency-key-supported": "true",
        "idempotency-key-lifetime": format_iso_duration(settings.lifetime),
    }


def check_idempotency_settings(
    settings: IdempotencySettings, *, request_timeout: timedelta, grace: timedelta
) -> None:
    """Refuse settings that are fine one by one and wrong together."""
    if settings.kept >= grace:
        # An answer may be given again from a version that others replaced in the same commit: no state names
        # that one, and the collector takes it when its grace is over.
        raise Misconfigured(
            "Answers would be collected while they can still be asked for again",
            key="idempotency.lifetime",
            fix="Make idempotency.lifetime + idempotency.buffer shorter than persistence.gc.grace.",
        )
    if settings.wait >= request_timeout:
        raise Misconfigured(
            "A repeated request would wait for longer than any request may take",
            key="idempotency.wait",
            fix="Make idempotency.wait shorter than server.request_timeout.",
        )
    if settings.lease >= settings.lifetime:
        raise Misconfigured(
            "A key would expire before its request can be given up for dead",
            key="idempotency.lease",
            fix="Make idempotency.lease shorter than idempotency.lifetime.",
        )
