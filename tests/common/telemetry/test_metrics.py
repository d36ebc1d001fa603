import signal
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cynosure.common.errors import Misconfigured
from cynosure.common.telemetry import metrics
from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram, Metric

WORKER = """
import sys
from pathlib import Path
from cynosure.common.telemetry import metrics
from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram

commits = Counter("tests", "commits", "Commits.", labels=("outcome",))
errors = Counter("tests", "errors", "Errors.")
open_files = Gauge("tests", "open_files", "Open files.")
oldest = Gauge("tests", "oldest_seconds", "Oldest.", combine="max")
latency = Histogram("tests", "latency_seconds", "Latency.", buckets=(0.1, 1.0))

metrics.start_metrics(directory=Path(sys.argv[1]), slot=sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    command, number = line.split()
    if command == "commit": commits.inc(float(number), outcome="won")
    if command == "open": open_files.set(float(number))
    if command == "oldest": oldest.set(float(number))
    if command == "observe": latency.observe(float(number))
    if command == "render": sys.stdout.write(metrics.render().decode())
    print("done", flush=True)
"""


class Worker:
    def __init__(self, directory, slot):
        self.slot = slot
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(directory), slot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read_until("ready")

    def tell(self, command, number=0):
        self.process.stdin.write(f"{command} {number}\n")
        self.process.stdin.flush()
        return self._read_until("done")

    def _read_until(self, word):
        lines = []
        while (line := self.process.stdout.readline()) != f"{word}\n":
            assert line, "the worker died"
            lines.append(line)
        return "".join(lines)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "metrics"
    metrics.prepare_directory(directory)
    return directory


@pytest.fixture
def start_worker(directory):
    workers = []

    def start(slot):
        workers.append(Worker(directory, slot))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()


def samples(text):
    families = text_string_to_metric_families(text.decode() if isinstance(text, bytes) else text)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if "tests" in sample.name
    }


def test_numbers_are_right_over_workers_deaths_and_restarts(directory, start_worker):
    """I24."""
    a, b = start_worker("0"), start_worker("1")
    for worker, size in ((a, 5), (b, 7)):
        worker.tell("commit", size)
        worker.tell("open", size)
        worker.tell("oldest", size)
        worker.tell("observe", 0.05)

    # Any worker answers for all.
    assert (
        samples(a.tell("render")) == samples(b.tell("render")) == samples(metrics.render_directory(directory))
    )
    found = samples(a.tell("render"))
    assert found["cynosure_tests_commits_total", "won"] == 12
    assert found["cynosure_tests_errors_total",] == 0
    assert found["cynosure_tests_open_files",] == 12
    assert found["cynosure_tests_oldest_seconds",] == 7
    assert found["cynosure_tests_latency_seconds_bucket", "0.1"] == 2
    assert found["cynosure_tests_latency_seconds_count",] == 2

    b.kill()
    metrics.forget_worker(directory, b.slot)
    found = samples(a.tell("render"))
    assert found["cynosure_tests_commits_total", "won"] == 12, "counters outlive their worker"
    assert found["cynosure_tests_open_files",] == 5, "gauges do not"
    assert found["cynosure_tests_oldest_seconds",] == 5

    b = start_worker("1")
    b.tell("commit", 1)
    found = samples(a.tell("render"))
    assert found["cynosure_tests_commits_total", "won"] == 13, "the successor goes on counting"
    assert found["cynosure_tests_open_files",] == 5
    assert found["cynosure_tests_latency_seconds_count",] == 2


def test_deaths_do_not_add_files(directory, start_worker):
    for _ in range(3):
        worker = start_worker("0")
        worker.tell("commit", 1)
        worker.kill()
        metrics.forget_worker(directory, "0")
        files = len(list(directory.iterdir()))

    assert files == 2
    assert samples(metrics.render_directory(directory))["cynosure_tests_commits_total", "won"] == 3


def test_a_new_run_starts_from_zero(directory, start_worker):
    start_worker("0").tell("commit", 1)
    metrics.prepare_directory(directory)

    assert samples(metrics.render_directory(directory)) == {}


def test_a_file_that_a_worker_is_about_to_fill_does_not_fail_a_scrape(directory, start_worker):
    start_worker("0").tell("commit", 1)
    (directory / "counter_1.db").touch()

    assert samples(metrics.render_directory(directory))["cynosure_tests_commits_total", "won"] == 1


def test_disk_space_is_taken_at_the_start_so_that_a_full_disk_cannot_kill_a_worker(directory, start_worker):
    start_worker("0")

    for path in directory.iterdir():
        assert path.stat().st_blocks * 512 >= path.stat().st_size, path


def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(Misconfigured) as refused:
        metrics.start_metrics(directory=tmp_path / "absent", slot="0")

    assert refused.value.details["reason"] == "ENOENT"


# --- one process -------------------------------------------------------------------------------


@pytest.fixture
def declare():
    """Metrics of one test; the process records in memory meanwhile."""
    before = dict(Metric.declared)
    yield lambda kind, *args, **options: kind("tests", *args, **options)
    metrics.stop_metrics()
    Metric.declared.clear()
    Metric.declared.update(before)


def test_one_process_records_in_memory(declare):
    counter = declare(Counter, "alone", "Alone.", labels=("outcome",))
    gauge = declare(Gauge, "level", "Level.")
    histogram = declare(Histogram, "size_bytes", "Size.", buckets=(10.0, 100.0))
    metrics.start_metrics()
    counter.inc(outcome="won")
    gauge.set(4)
    gauge.inc(-1)
    histogram.observe(50)

    found = samples(metrics.render())
    assert found["cynosure_tests_alone_total", "won"] == 1
    assert found["cynosure_tests_level",] == 3
    assert found["cynosure_tests_size_bytes_bucket", "100.0"] == 1


def test_without_a_start_or_when_off_nothing_is_recorded_and_nothing_fails(declare):
    counter = declare(Counter, "off", "Off.")
    counter.inc()
    assert metrics.render() == b""

    metrics.start_metrics()
    assert samples(metrics.render())["cynosure_tests_off_total",] == 0
    counter.inc()
    metrics.stop_metrics()
    counter.inc()
    assert metrics.render() == b""


def test_a_metric_declared_after_the_start_is_recorded(declare):
    metrics.start_metrics()
    declare(Counter, "late", "Late.").inc(2)

    assert samples(metrics.render())["cynosure_tests_late_total",] == 2


def test_a_name_is_declared_once(declare):
    declare(Counter, "twice", "Once.")

    with pytest.raises(TypeError):
        declare(Counter, "twice", "Twice.")


def test_declared_names_follow_the_convention():
    units = ("_total", "_seconds", "_bytes", "_info", "_ratio")
    for name, metric in Metric.declared.items():
        assert name.startswith("cynosure_")
        assert metric.text.endswith(".")
        assert name.endswith(units) or metric.kind == "gauge", name


def test_log_events_are_counted(declare):
    import io
    import logging

    from cynosure.common.telemetry.logs import ERROR, Log, start_logging
    from cynosure.common.telemetry.settings import TelemetrySettings

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    metrics.start_metrics()
    try:
        start_logging(TelemetrySettings(), io.StringIO())
        Log("cynosure.tests").event("a.b", level=ERROR)
    finally:
        root.handlers[:], root.level = handlers, level
        logging.captureWarnings(False)

    assert b'cynosure_telemetry_log_events_total{level="error"} 1.0' in metrics.render()


def test_a_tally_adds_what_its_values_would_have_added_one_by_one(declare):
    values = [0.0, 9.9, 10.0, 10.1, 100.0, 1e9]
    metrics.start_metrics()
    single = declare(Histogram, "single_bytes", "Size.", buckets=(10.0, 100.0))
    together = declare(Histogram, "together_bytes", "Size.", buckets=(10.0, 100.0))

    tally = together.tally()
    for value in values:
        single.observe(value)
        tally.observe(value)
    together.add(tally)

    text = metrics.render().decode()
    lines = [line for line in text.splitlines() if "_bytes" in line and not line.startswith("#")]
    singles = [line.replace("single", "together") for line in lines if "single" in line]
    assert len(singles) == 5
    assert singles == [line for line in lines if "together" in line]


def test_whoever_counts_by_itself_is_asked_before_metrics_are_shown(declare):
    metrics.start_metrics()
    counter = declare(Counter, "asked", "Asked.")

    class Counting:
        def publish(self):
            counter.inc()

    counting = Counting()
    metrics.publish_before_render(counting)

    assert "asked_total 1.0" in metrics.render().decode()
    del counting
    assert "asked_total 1.0" in metrics.render().decode()
