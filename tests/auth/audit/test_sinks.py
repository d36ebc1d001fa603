"""Events told to others: all of them, in order, at least once, and nothing secret in what goes wrong."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.auth.audit.deliver import TRIMMED_REASON, Delivery
from cynosure.auth.audit.file_sink import FileSink
from cynosure.auth.audit.retention import trim_events
from cynosure.auth.audit.sink import SINK_POSITION, position_id
from cynosure.auth.audit.webhook_sink import WebhookSink
from cynosure.auth.settings import WebhookSettings
from cynosure.common.clock import SystemClock
from cynosure.common.errors import LeaseLost, Misconfigured
from cynosure.common.secrets import Secret
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.harness.clock import ManualClock

from .realm import SETTINGS, Realm
from .receiver import Received, Receiver, open_receiver

pytestmark = pytest.mark.anyio


@pytest.fixture
def url() -> str:
    return "memory:"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as opened:
        yield opened


@pytest.fixture
def metrics() -> Iterator[None]:
    start_metrics()
    yield
    stop_metrics()


def webhook(receiver: Receiver, persistence: Persistence, **settings: object) -> WebhookSink:
    wanted = WebhookSettings(url=Secret(receiver.url), **settings)  # type: ignore[arg-type]
    return WebhookSink(wanted, persistence.clock, persistence.info.id)


async def deliver_all(delivery: Delivery) -> None:
    while await delivery.run_once([DEFAULT_REALM], lambda: None):
        pass


async def write(realm: Realm, first: int, last: int) -> None:
    for at in range(first, last):
        await realm.do(f"p{at}", principal="ann", request_id=f"r{at}")
    await realm.collect()


# --- webhook ----------------------------------------------------------------------------------------------


async def test_a_webhook_gets_cloud_events_in_batches_signed(
    realm: Realm, persistence: Persistence, receiver: Receiver
) -> None:
    """I45."""
    key = b"0123456789abcdef"
    secret = Secret(f"whsec_{base64.b64encode(key).decode()}")
    headers = {"authorization": Secret("Bearer of-the-receiver"), "x_team": Secret("data")}
    sink = webhook(receiver, persistence, secret=secret, headers=headers, batch_events=4)
    await write(realm, 0, 10)

    await deliver_all(Delivery(persistence, sink))
    await sink.close()

    assert [len(each.events) for each in receiver.requests] == [4, 4, 2]
    assert receiver.names() == [f"p{at}" for at in range(10)]
    sent = receiver.requests[0]
    assert sent.headers["content-type"] == "application/cloudevents-batch+json"
    assert (sent.headers["authorization"], sent.headers["x-team"]) == ("Bearer of-the-receiver", "data")
    signed = f"{sent.headers['webhook-id']}.{sent.headers['webhook-timestamp']}.".encode() + sent.body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert sent.headers["webhook-signature"] == f"v1,{expected}"
    event = sent.events[0]
    assert (event["specversion"], event["type"]) == ("1.0", "cynosure.audit.change")
    assert event["source"] == f"/cynosure/{persistence.info.id}/realms/default"
    assert event["datacontenttype"] == "application/json"
    assert (event["data"]["id"], event["data"]["requestId"]) == (event["id"], "r0")
    ids = [each["id"] for each in receiver.taken()]
    assert len(set(ids)) == 10


async def test_a_webhook_may_be_told_one_by_one(
    realm: Realm, persistence: Persistence, receiver: Receiver
) -> None:
    sink = webhook(receiver, persistence, mode="single")
    await write(realm, 0, 3)

    await deliver_all(Delivery(persistence, sink))
    await sink.close()

    assert [each.headers["content-type"] for each in receiver.requests] == [
        "application/cloudevents+json"
    ] * 3
    assert [isinstance(json.loads(each.body), dict) for each in receiver.requests] == [True] * 3
    assert receiver.names() == ["p0", "p1", "p2"]


@pytest.mark.parametrize("status", [302, 400, 410, 500])
async def test_what_a_webhook_refuses_comes_again_until_it_is_taken(
    realm: Realm,
    persistence: Persistence,
    receiver: Receiver,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    metrics: None,
    status: int,
) -> None:
    """I45."""
    sink = webhook(receiver, persistence, batch_events=2)
    delivery = Delivery(persistence, sink)
    receiver.status_for = lambda _: status
    await write(realm, 0, 5)
    clock.step_wall(50)

    for _ in range(4):
        with caplog.at_level(logging.DEBUG):
            assert not await delivery.run_once([DEFAULT_REALM], lambda: None)
        await clock.advance(61)
    assert len(receiver.requests) == 4
    assert len({each.body for each in receiver.requests}) == 1
    assert b'cynosure_audit_sink_failures_total{sink="webhook"} 4.0' in render()
    (lag,) = [line for line in render().splitlines() if line.startswith(b"cynosure_audit_sink_lag_seconds{")]
    assert float(lag.split()[-1]) > 50
    assert "hidden-token" not in "".join(str(vars(each)) for each in caplog.records)
    told = [each.getMessage() for each in caplog.records if each.name.startswith("cynosure.auth")]
    assert told == ["audit.delivery_failed"] * 4

    receiver.status_for = lambda _: 200
    await deliver_all(delivery)
    await sink.close()

    assert receiver.names() == [f"p{at}" for at in range(5)]
    assert b'cynosure_audit_sink_lag_seconds{sink="webhook"} 0.0' in render()


async def test_a_failing_sink_is_left_alone_for_a_while(
    realm: Realm, persistence: Persistence, receiver: Receiver, clock: ManualClock
) -> None:
    sink = webhook(receiver, persistence)
    delivery = Delivery(persistence, sink)
    receiver.status_for = lambda _: 503
    await write(realm, 0, 1)
    for _ in range(20):
        await delivery.run_once([DEFAULT_REALM], lambda: None)
    assert len(receiver.requests) == 1

    await clock.advance(300)
    await delivery.run_once([DEFAULT_REALM], lambda: None)
    await sink.close()
    assert len(receiver.requests) == 2


async def test_a_receiver_that_is_away_is_told_later_and_its_address_stays_secret(
    realm: Realm, persistence: Persistence, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with open_receiver() as gone:
        pass
    sink = webhook(gone, persistence)
    await write(realm, 0, 1)
    with caplog.at_level(logging.DEBUG):
        await Delivery(persistence, sink).run_once([DEFAULT_REALM], lambda: None)
    await sink.close()

    assert "audit.delivery_failed" in [each.getMessage() for each in caplog.records]
    assert "hidden-token" not in "".join(str(vars(each)) for each in caplog.records)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"url": Secret("ftp://example.com/x?hidden")}, "auth.audit.webhook.url"),
        ({"url": Secret("https://x:hidden")}, "auth.audit.webhook.url"),
        ({"url": Secret("hidden")}, "auth.audit.webhook.url"),
        ({"url": Secret("http://x"), "headers": {"a b": Secret("hidden")}}, "auth.audit.webhook.headers"),
        ({"url": Secret("http://x"), "secret": Secret("whsec_hidden!")}, "auth.audit.webhook.secret"),
        ({"url": Secret("http://x"), "headers": {"a": Secret("hiddén")}}, "auth.audit.webhook.headers"),
    ],
)
async def test_a_webhook_that_cannot_work_is_refused_at_the_start_without_showing_it(
    settings: dict[str, object], key: str
) -> None:
    with pytest.raises(Misconfigured) as refused:
        WebhookSink(WebhookSettings(**settings), SystemClock(), "store")  # type: ignore[arg-type]
    assert refused.value.details["key"] == key
    assert "hidd" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


# --- who delivers, and from where -------------------------------------------------------------------------


async def test_after_kill_9_between_taking_and_remembering_nothing_is_missing(
    tmp_path: Path, receiver: Receiver
) -> None:
    """I45."""
    url = f"sqlite:{tmp_path / 'store.db'}"
    async with open_persistence(url, SETTINGS, initialise=True) as persistence:
        realm = Realm(persistence)
        await write(realm, 0, 20)
        script = Path(__file__).with_name("dying_deliverer.py")
        command = [sys.executable, str(script), url, receiver.url, "2"]
        died = await asyncio.to_thread(subprocess.run, command, timeout=60, check=False)
        assert died.returncode == -signal.SIGKILL
        sink = webhook(receiver, persistence, batch_events=3)
        await deliver_all(Delivery(persistence, sink))
        await sink.close()

    told = receiver.names()
    assert list(dict.fromkeys(told)) == [f"p{at}" for at in range(20)]
    # Its death repeats exactly the page that was taken and not remembered.
    assert len(told) == 20 + 3


async def test_two_deliverers_at_once_tell_twice_and_never_too_little(
    realm: Realm, persistence: Persistence, receiver: Receiver
) -> None:
    sinks = [webhook(receiver, persistence, batch_events=2) for _ in range(2)]
    await write(realm, 0, 9)

    outcomes = await asyncio.gather(
        *(deliver_all(Delivery(persistence, sink)) for sink in sinks), return_exceptions=True
    )
    await deliver_all(Delivery(persistence, sinks[0]))
    for sink in sinks:
        await sink.close()

    assert all(outcome is None or isinstance(outcome, LeaseLost) for outcome in outcomes)
    assert set(receiver.names()) == {f"p{at}" for at in range(9)}


async def test_a_sink_that_fell_behind_retention_is_told_that_it_missed_something(
    realm: Realm, persistence: Persistence, receiver: Receiver, clock: ManualClock
) -> None:
    sink = webhook(receiver, persistence, batch_events=2)
    delivery = Delivery(persistence, sink)
    await write(realm, 0, 2)
    await deliver_all(delivery)
    await write(realm, 2, 4)
    clock.step_wall(100)
    await trim_events(persistence, DEFAULT_REALM, timedelta(seconds=50))
    await write(realm, 4, 6)

    await deliver_all(delivery)
    await sink.close()

    kinds = [(event["data"]["kind"], event.get("subject")) for event in receiver.taken()]
    assert kinds == [
        ("change", "p0"),
        ("change", "p1"),
        ("gap", None),
        ("change", "p4"),
        ("change", "p5"),
    ]
    assert receiver.taken()[2]["data"]["reason"] == TRIMMED_REASON


async def test_a_new_sink_begins_with_the_oldest_event_there_is(
    realm: Realm, persistence: Persistence, tmp_path: Path, clock: ManualClock
) -> None:
    await write(realm, 0, 2)
    clock.step_wall(100)
    await trim_events(persistence, DEFAULT_REALM, timedelta(seconds=50))
    await write(realm, 2, 4)
    sink = FileSink(tmp_path / "events.jsonl")

    await deliver_all(Delivery(persistence, sink))
    await sink.close()

    assert lines(tmp_path / "events.jsonl") == ["p2", "p3"]


async def test_a_lost_lease_ends_delivery_before_the_next_effect(
    realm: Realm, persistence: Persistence, receiver: Receiver
) -> None:
    sink = webhook(receiver, persistence)
    await write(realm, 0, 1)

    def lost() -> None:
        raise LeaseLost("Gone")

    with pytest.raises(LeaseLost):
        await Delivery(persistence, sink).run_once([DEFAULT_REALM], lost)
    await sink.close()
    assert receiver.requests == []


async def test_one_realms_trouble_does_not_hold_up_another(
    realm: Realm, persistence: Persistence, receiver: Receiver
) -> None:
    sink = webhook(receiver, persistence)

    def is_refused(request: Received) -> int:
        return 400 if "realms/default" in request.body.decode() else 204

    receiver.status_for = is_refused
    await write(realm, 0, 1)
    delivery = Delivery(persistence, sink)

    # A realm that was deleted meanwhile is trouble of its own.
    await delivery.run_once([DEFAULT_REALM, "gone", DEFAULT_REALM], lambda: None)  # type: ignore[list-item]
    await sink.close()

    assert len(receiver.requests) == 1
    assert set(delivery._trouble) == {DEFAULT_REALM, "gone"}


# --- file ---------------------------------------------------------------------------------------------------


def lines(path: Path) -> list[str]:
    return [json.loads(line)["targets"][0]["name"] for line in path.read_text().splitlines()]


async def test_a_file_gets_one_line_of_json_per_event_and_belongs_to_its_owner_alone(
    realm: Realm, persistence: Persistence, tmp_path: Path
) -> None:
    """I45."""
    path = tmp_path / "events.jsonl"
    sink = FileSink(path)
    await write(realm, 0, 5)
    await deliver_all(Delivery(persistence, sink))
    await write(realm, 5, 7)
    await deliver_all(Delivery(persistence, sink))
    await sink.close()

    assert lines(path) == [f"p{at}" for at in range(7)]
    assert path.stat().st_mode & 0o777 == 0o600
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["principal"], first["requestId"], first["decision"]) == ("ann", "r0", "allowed")


async def test_a_file_that_is_moved_away_is_begun_anew(
    realm: Realm, persistence: Persistence, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    sink = FileSink(path)
    delivery = Delivery(persistence, sink)
    await write(realm, 0, 2)
    await deliver_all(delivery)
    path.rename(tmp_path / "events.1")
    await write(realm, 2, 4)
    await deliver_all(delivery)
    path.unlink()
    await write(realm, 4, 5)
    await deliver_all(delivery)
    await sink.close()

    assert lines(tmp_path / "events.1") == ["p0", "p1"]
    assert lines(path) == ["p4"]


async def test_half_a_line_that_a_crash_left_is_ended_first(
    realm: Realm, persistence: Persistence, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"id":"1"}\n{"id":"2","ti')
    sink = FileSink(path)
    await write(realm, 0, 1)
    await deliver_all(Delivery(persistence, sink))
    await sink.close()

    first, half, whole = path.read_text().splitlines()
    assert (first, half) == ('{"id":"1"}', '{"id":"2","ti')
    assert json.loads(whole)["targets"][0]["name"] == "p0"


async def test_a_disk_that_is_full_is_waited_for(
    realm: Realm, persistence: Persistence, clock: ManualClock, tmp_path: Path
) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.fail("/dev/full is needed")
    path = tmp_path / "events.jsonl"
    path.symlink_to("/dev/full")
    sink = FileSink(path)
    delivery = Delivery(persistence, sink)
    await write(realm, 0, 2)
    await delivery.run_once([DEFAULT_REALM], lambda: None)
    stored = await persistence.store(DEFAULT_REALM).fetch(SINK_POSITION, position_id("file"))
    assert stored is not None
    assert stored.value.number == 0

    path.unlink()
    await clock.advance(2)
    await deliver_all(delivery)
    await sink.close()
    assert lines(path) == ["p0", "p1"]
