"""The benchmark runner, from its command line."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not part of the distribution

from benchmarks.compare import compare  # noqa: E402
from benchmarks.measure import Figures, Meter, Options  # noqa: E402

from benchmarks import results_file  # noqa: E402


def bench(*arguments: str, module: str = "runner") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)


def figures(operations: int, wall_s: float, **more) -> Figures:
    defaults = {"cpu_s": wall_s, "watched_cpu_s": 0.0, "bytes": 0, "rows": 0, "requests": 0}
    return Figures(operations=operations, wall_s=wall_s, **(defaults | more))


def test_every_suite_is_listed_with_what_it_measures():
    listed = bench()
    assert listed.returncode == 0, listed.stderr
    suites = {path.stem for path in (ROOT / "benchmarks/suites").glob("*.py")} - {"__init__"}
    rows = [line.split("|") for line in listed.stdout.splitlines() if line.startswith("| ")][2:]
    assert {row[1].strip() for row in rows} == suites
    assert all(row[2].strip() for row in rows)


def test_a_suite_runs_and_prints_its_candidates():
    done = bench("machine", "--rounds", "1", "--warmups", "0", "--set", "count=3", "--only", "msgpack")
    assert done.returncode == 0, done.stderr
    assert "| msgpack " in done.stdout
    assert "| sha256 " not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nonsense"], "no suite 'nonsense'"),
        (["machine", "--set", "cuont=3"], "has no option cuont"),
        (["machine", "--set", "count=3", "--only", "nobody"], "has no candidate nobody"),
        (["machine", "--rounds", "4", "--save"], "at least 5 rounds"),
    ],
)
def test_a_wrong_command_says_what_would_be_right(arguments: list[str], reason: str):
    done = bench(*arguments)
    assert done.returncode != 0
    assert reason in done.stderr


def test_a_meter_charges_this_process_and_watched_children_in_all_generations():
    burn = "sum(range(3_000_000))"
    parent = (
        "import subprocess, sys; sys.stdin.readline(); "
        f"subprocess.run([sys.executable, '-c', {burn!r}]); print('done', flush=True); sys.stdin.readline()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    meter = Meter()
    meter.watch(process.pid)
    with meter.measuring():
        exec(burn)
        process.stdin.write("go\n")
        process.stdin.flush()
        process.stdout.readline()
    meter.count(operations=1, rows=2)
    process.communicate("end\n")

    measured = meter.figures()
    assert measured.cpu_s > 0
    assert measured.watched_cpu_s > 0, "the grandchild has ended; its time must not be forgotten"
    assert measured.rows == 2


def test_a_round_that_forgot_to_count_is_refused():
    meter = Meter()
    with meter.measuring():
        pass
    with pytest.raises(ValueError, match="operations"):
        meter.figures()


def test_an_option_takes_the_type_of_its_default_and_is_recorded():
    options = Options({"keys": "10", "typo": "1"})
    assert options.get("keys", 5) == 10
    assert options.get("size", 1.5) == 1.5
    assert options.used == {"keys": "10", "size": "1.5"}
    assert options.unused == ["typo"]


def test_medians_are_per_operation_and_empty_columns_are_left_out():
    rounds = [
        figures(10, 1.0, notes={"p99 ms": 3.0}),
        figures(10, 3.0),
        figures(10, 2.0, notes={"p99 ms": 5.0}),
    ]
    summary = results_file.summarize(rounds)
    assert summary["wall µs"] == 200_000
    assert summary["operations/s"] == 5
    assert summary["p99 ms"] == 4.0
    assert "rows" not in summary


def test_saved_results_are_found_by_commit_newest_first(tmp_path: Path):
    made = results_file.make_result("machine", {}, {"a": [figures(1, 1.0)]})
    old = msgspec.structs.replace(made, commit="abc123", date="2026-01-01T00:00:00Z")
    new = msgspec.structs.replace(old, date="2026-01-02T00:00:00Z", candidates={"a": [figures(1, 2.0)]})
    for result in (new, old):
        results_file.save(result, tmp_path)

    assert results_file.find("abc", tmp_path) == {"machine": new}
    assert results_file.find("fff", tmp_path) == {}
    assert compare(old, new)["a"]["wall µs"] == "1,000,000 → 2,000,000 (2.00)"


def test_comparing_an_unknown_commit_says_so():
    done = bench("0000000000", "1111111111", module="compare")
    assert done.returncode != 0
    assert "neither a result file nor a commit" in done.stderr


def test_a_saved_result_keeps_no_secret_of_a_peer():
    targets = "peer=http://root:secret@127.0.0.1:1/api,other=http://127.0.0.1:2"

    result = results_file.make_result("catalog", {"targets": targets}, {})

    assert result.options == {"targets": "peer=http://127.0.0.1:1/api,other=http://127.0.0.1:2"}
