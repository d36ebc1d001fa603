"""Settings of logs, metrics and traces."""

from typing import Literal

from msgspec import Struct, field

from cynosure.common.secrets import Secret


class TelemetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Logs, metrics and traces."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Events below this level are not written."""
    log_format: Literal["auto", "text", "json"] = "auto"
    """`text` for people, `json` for one JSON object per line; `auto` is text on a terminal, else JSON."""
    metrics: bool = True
    """Collect Prometheus metrics."""
    otel_endpoint: str | None = None
    """Base URL of an OpenTelemetry collector (OTLP over HTTP), such as `http://127.0.0.1:4318`. Left out:
    no tracing. Needs the extra `telemetry`."""
    otel_headers: dict[str, Secret] = field(default_factory=dict)
    """HTTP headers sent to the collector, by name, such as its API key."""
