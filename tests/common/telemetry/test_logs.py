import io
import json
import logging
import warnings
from datetime import timedelta

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cynosure.common.errors import Contended
from cynosure.common.secrets import Secret
from cynosure.common.telemetry.logs import DEBUG, ERROR, Log, start_logging
from cynosure.common.telemetry.request_scope import request_scope
from cynosure.common.telemetry.settings import TelemetrySettings

log = Log("cynosure.tests")


@pytest.fixture
def start():
    """Starts logging into a stream, and puts the root logger back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def begin(stream=None, **given):
        stream = stream or io.StringIO()
        start_logging(TelemetrySettings(**given), stream)
        return stream

    yield begin
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)


def events(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_an_event_is_one_json_object_with_its_fields_and_scope(start):
    stream = start()

    with request_scope(request_id="r1", realm="default", principal="ann"):
        log.event("commit.lost", reference="main", attempts=3)

    (event,) = events(stream)
    assert event.pop("time").endswith("Z")
    assert event == {
        "level": "info",
        "event": "commit.lost",
        "logger": "cynosure.tests",
        "request_id": "r1",
        "realm": "default",
        "principal": "ann",
        "reference": "main",
        "attempts": 3,
    }


def test_a_terminal_gets_text(start):
    stream = start(Terminal())

    with request_scope(request_id="r1"):
        log.event("commit.lost", reference="main", note="two words")

    assert stream.getvalue().endswith(
        ' INFO    commit.lost logger=cynosure.tests request_id=r1 reference=main note="two words"\n'
    )


def test_the_format_can_be_chosen_whatever_the_stream(start):
    stream = start(Terminal(), log_format="json")
    log.event("a.b")
    assert events(stream)
    stream = start(log_format="text")
    log.event("a.b")
    assert " INFO    a.b " in stream.getvalue()


def test_levels_below_the_setting_are_not_written(start):
    stream = start(log_level="warning")
    log.event("a.b")
    log.event("a.c", level=DEBUG)
    log.event("a.d", level=ERROR)

    assert [event["event"] for event in events(stream)] == ["a.d"]


class Options(msgspec.Struct):
    user: str
    password: Secret


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_secret_is_masked_at_any_depth(start, log_format):
    """I21."""
    stream = start(log_format=log_format)
    secret = Secret("hunter2")

    log.event(
        "a.b",
        plain=secret,
        nested={"list": [secret, (secret,)], "struct": Options("u", secret)},
        error=Contended("Lost", key=secret),
    )

    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("***") == 5


def test_bytes_are_never_shown(start):
    stream = start()
    log.event("a.b", blob=b"hunter2", more=[bytearray(b"hunter2")])

    assert events(stream)[0]["blob"] == "<7 bytes>"
    assert "hunter2" not in stream.getvalue()


def test_an_error_gives_type_message_fix_and_details(start):
    stream = start()
    log.event(
        "a.b",
        error=Contended("Too many writers", fix="Wait.", reference="main", waited=timedelta(seconds=60)),
    )

    assert events(stream)[0]["error"] == {
        "type": "Contended",
        "message": "Too many writers",
        "fix": "Wait.",
        "details": {"reference": "main", "waited": "1m"},
    }


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_traceback_comes_when_asked_for(start, log_format):
    stream = start(log_format=log_format)
    with pytest.raises(ValueError, match="no") as raised:
        int("no\n2026-01-01 INFO forged.event")

    log.event("a.b", error=raised.value)
    assert "Traceback" not in stream.getvalue()
    log.event("a.b", error=raised.value, with_traceback=True)
    assert "Traceback" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()
    assert not any(line.startswith("2026-01-01") for line in stream.getvalue().splitlines())


def test_a_field_cannot_replace_what_every_event_has(start):
    stream = start()
    log.event("a.b", event="forged", time="never", logger="x")

    (event,) = events(stream)
    assert event["event"] == "a.b"
    assert event["field_event"] == "forged"
    assert event["logger"] == "cynosure.tests"


def test_events_of_libraries_and_warnings_join_in(start):
    stream = start()
    with request_scope(request_id="r1"):
        logging.getLogger("asyncio").warning("took %s ms", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", stacklevel=1)
        logging.captureWarnings(False)

    first, second = events(stream)
    assert (first["event"], first["logger"], first["request_id"]) == ("took 5 ms", "asyncio", "r1")
    assert second["logger"] == "py.warnings"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    value=st.recursive(st.none() | st.text() | st.floats() | st.integers() | st.binary(), st.lists),
    text=st.text(),
)
def test_no_value_breaks_a_line_or_forges_one(start, value, text):
    for log_format in ("text", "json"):
        stream = start(log_format=log_format)
        with request_scope(principal=text):
            log.event("a.b", value=value, text=text)
            logging.getLogger("library").info(text)

        written = stream.getvalue()
        assert written.endswith("\n")
        written.encode()
        assert len(written.splitlines()) == 2
        assert all(line.isprintable() for line in written.splitlines())
    assert events(stream)[1]["event"] == text


def test_numbers_that_json_does_not_have_become_text(start):
    stream = start()
    log.event("a.b", rates=[float("nan"), float("inf")])

    assert events(stream)[0]["rates"] == ["nan", "inf"]


def test_a_deep_or_endless_value_is_cut(start):
    stream = start()
    endless = []
    endless.append(endless)
    log.event("a.b", value=endless, text="x" * 100_000)

    assert len(stream.getvalue()) < 12_000


def test_a_value_whose_repr_fails_does_not_fail_the_caller(start, capsys):
    class Broken:
        def __repr__(self):
            raise RuntimeError("no repr")

    stream = start()
    log.event("a.b", value=Broken())
    log.event("a.c")

    assert [event["event"] for event in events(stream)] == ["a.b", "a.c"]


def test_requests_that_this_server_sends_are_not_told_one_by_one(start):
    stream = start(log_format="json")

    logging.getLogger("httpx").info("HTTP Request: POST")
    logging.getLogger("httpx").warning("worth knowing")

    assert [each["event"] for each in events(stream)] == ["worth knowing"]
