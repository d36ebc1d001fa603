"""Structured logs: a constant event name, and everything that varies as a field.

Text for terminals, one JSON object per line otherwise. Values are made plain by type, so a `Secret`
prints as `***` at any depth, and no value can break a line or forge a second one.
"""

import json
import logging
import math
import sys
import traceback
from collections.abc import Mapping, Set
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import msgspec

from cynosure.common.errors import CynosureError
from cynosure.common.quantities import format_duration
from cynosure.common.telemetry.metrics import Counter
from cynosure.common.telemetry.request_scope import RequestScope, current_scope
from cynosure.common.telemetry.settings import TelemetrySettings

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR

_LOG_EVENTS = Counter("telemetry", "log_events", "Log events written, by level.", labels=("level",))
_FIELDS = "cynosure_fields"
_SCOPE_FIELDS = RequestScope.__struct_fields__
_MAX_DEPTH = 6
_MAX_TEXT = 10_000
"""Longer text is cut: one line of a log must stay one line that tools accept."""
_encode = msgspec.json.Encoder().encode


class Log:
    """The log of one module: `log = Log(__name__)`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def event(
        self,
        name: str,
        /,
        *,
        level: int = INFO,
        error: BaseException | None = None,
        with_traceback: bool = False,
        **fields: Any,
    ) -> None:
        """Write one event. `name` is constant, dotted, a noun and what became of it: `commit.lost`.

        `error` adds its type, message, details and fix; its traceback only when asked for.
        """
        if self._logger.isEnabledFor(level):
            if error is not None:
                fields["error"] = error
            trace = (
                (type(error), error, error.__traceback__) if error is not None and with_traceback else None
            )
            # Not through `Logger.log`: no line says where it was written, and looking that up costs as much
            # as formatting.
            record = logging.LogRecord(self._logger.name, level, "", 0, name, None, trace)
            setattr(record, _FIELDS, fields)
            self._logger.handle(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        event = _event_of(record)
        try:
            return _escape(_encode(event).decode())
        except (UnicodeEncodeError, OverflowError):
            # Half a character or a number of more than 64 bits: rare, and no reason to lose the line.
            return _escape(json.dumps(event, ensure_ascii=False))


class TextFormatter(logging.Formatter):
    """Time, level, event, then fields as `name=value`; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        event = _event_of(record)
        trace = event.pop("traceback", "")
        head = f"{event.pop('time')} {event.pop('level').upper():7} {event.pop('event')}"
        line = _escape(" ".join([head, *(f"{name}={_word(value)}" for name, value in event.items())]))
        # Indented, so that no line of an error's text can pass for an event.
        return "\n    ".join([line, *map(_escape, trace.splitlines())])


class _CountingHandler(logging.StreamHandler[TextIO]):
    def emit(self, record: logging.LogRecord) -> None:
        _LOG_EVENTS.inc(level=record.levelname.lower())
        super().emit(record)


def start_logging(settings: TelemetrySettings, stream: TextIO | None = None) -> logging.Handler:
    """Send all logs of this process, also those of libraries, to `stream` (standard error by default).

    Replaces the handlers of the root logger and returns the new one.
    """
    stream = sys.stderr if stream is None else stream
    is_text = settings.log_format == "text" or (settings.log_format == "auto" and stream.isatty())
    handler = _CountingHandler(stream)
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    # It would tell of every request that this server sends: to token services, webhooks, other issuers.
    logging.getLogger("httpx").setLevel(max(root.level, WARNING))
    logging.captureWarnings(True)
    return handler


def _event_of(record: logging.LogRecord) -> dict[str, Any]:
    created = datetime.fromtimestamp(record.created, UTC)
    scope = current_scope()
    event: dict[str, Any] = {
        "time": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "event": _cut(record.getMessage()),
        "logger": record.name,
    }
    for name in _SCOPE_FIELDS:
        if value := getattr(scope, name):
            event[name] = _cut(value)
    for name, value in getattr(record, _FIELDS, {}).items():
        event[f"field_{name}" if name in event else name] = _plain(value, _MAX_DEPTH)
    if record.exc_info and record.exc_info[1] is not None:
        event["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return event


def _plain(value: Any, depth: int) -> Any:
    """A value that JSON can hold and that says nothing secret. Unknown types give their `repr`."""
    # Exactly these types: a subclass may be anything, also a secret.
    if type(value) is str:
        return _cut(value)
    if type(value) is int:
        return value
    match value:
        case float() if not math.isfinite(value):
            # JSON has no infinity; many readers refuse a line that holds one.
            plain: Any = str(value)
        case None | bool() | int() | float():
            plain = value
        case str():
            plain = _cut(value)
        case bytes() | bytearray() | memoryview():
            # Bytes are row data or keys here, never something to read.
            plain = f"<{len(value)} bytes>"
        case timedelta() if value >= timedelta(0):
            plain = format_duration(value)
        case BaseException() | msgspec.Struct() | Mapping() | list() | tuple() | Set() if depth == 0:
            plain = "…"
        case CynosureError():
            named = {"type": type(value).__name__, "message": value.message, "fix": value.fix}
            plain = named | {"details": _plain(value.details, depth - 1)}
        case BaseException():
            plain = {"type": type(value).__name__, "message": _cut(str(value))}
        case msgspec.Struct():
            plain = _plain(msgspec.structs.asdict(value), depth)
        case Mapping():
            plain = {_cut(str(key)): _plain(item, depth - 1) for key, item in value.items()}
        case list() | tuple() | Set():
            plain = [_plain(item, depth - 1) for item in value]
        case _:
            plain = _shown(value)
    return plain


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}… ({len(text)} characters)"


def _word(value: Any) -> str:
    if isinstance(value, str) and value and value.isprintable() and not any(c in ' "=' for c in value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _escape(line: str) -> str:
    """Everything that a terminal or a log reader could act on, as JSON escapes it; also half characters."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line).replace(
        "\x7f", r"\u007f"
    )


def _shown(value: object) -> str:
    try:
        return _cut(repr(value))
    except Exception as error:
        return f"<{type(value).__name__} without text: {type(error).__name__}>"
