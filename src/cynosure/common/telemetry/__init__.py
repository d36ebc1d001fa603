"""What the operator sees: logs, metrics, traces, and the request id that joins them.

- `request_scope.py`  who asked: request id, realm, principal, carried along in a context variable
- `logs.py`           one structured event per decision: `log.event("commit.lost", attempts=3)`
- `metrics.py`        declared Prometheus metrics, right with several worker processes
- `tracing.py`        OpenTelemetry spans; no cost when off

A maintainer must not break: telemetry never fails a request and never shows a `Secret`.
"""
