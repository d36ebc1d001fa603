import random
from collections.abc import Iterator

import pytest

from cynosure.catalog.errors import NoSuchNamespace
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.guard import metrics
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.clock import ManualClock
from tests.federation.guard.scripted_remote import ScriptedRemote

pytestmark = pytest.mark.anyio

DOWN = RemoteUnavailable("far", reason="scripted")


@pytest.fixture(autouse=True)
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(metrics, "_names", set())
    start_metrics()
    yield
    stop_metrics()


async def test_every_request_is_counted_by_what_became_of_it() -> None:
    remote = ScriptedRemote({}, NoSuchNamespace("ns"), KeyError("x"), ConnectionResetError(), DOWN)
    settings = FederationSettings(retries=0, break_after=2)
    guarded = GuardedRemote("far", lambda: remote, settings, ManualClock(), random.Random(1), mark="f4")

    outcomes = []
    for ask in (*[guarded.load_namespace] * 3, guarded.drop_namespace, *[guarded.load_namespace] * 2):
        try:
            await ask(("ns",))
            outcomes.append("answered")
        except Exception as error:
            outcomes.append(type(error).__name__)

    assert outcomes == [
        "answered",
        "NoSuchNamespace",
        "RemoteMisbehaved",
        "OutcomeUnknown",
        "RemoteUnavailable",
        "RemoteUnavailable",
    ]
    shown = render().decode()
    for operation, outcome in (
        ("load_namespace", "answered"),
        ("load_namespace", "refused"),
        ("load_namespace", "misbehaved"),
        ("drop_namespace", "unknown"),
        ("load_namespace", "unavailable"),
        ("load_namespace", "left-alone"),
    ):
        labels = f'catalog="f4",operation="{operation}",outcome="{outcome}"'
        assert f"cynosure_federation_requests_total{{{labels}}} 1.0" in shown
    assert 'cynosure_federation_breaker_open{catalog="f4"} 2.0' in shown
    assert 'cynosure_federation_request_seconds_count{catalog="f4"} 5.0' in shown
    assert 'cynosure_federation_queued{catalog="f4"}' not in shown


async def test_however_many_catalogs_there_are_the_series_are_few() -> None:
    labels = {metrics.label_of(f"catalog {number}") for number in range(1_000)}

    assert len(labels) == 33
    assert metrics.label_of("catalog 0") == "catalog 0"
    assert metrics.label_of("catalog 999") == "(other)"


async def test_what_was_seen_is_counted() -> None:
    metrics.note_seen("unchanged")
    metrics.note_seen("unchanged")

    assert 'cynosure_federation_seen_total{outcome="unchanged"} 2.0' in render().decode()
