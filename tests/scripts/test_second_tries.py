"""What fails by chance where processes run costs no run and is named; where rules are tested, it is red."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAILS_ONCE = """
import pytest

pytestmark = pytest.mark.anyio
tries = []
made = []

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="module")
async def shared(anyio_backend):
    made.append("shared")
    yield
    made.append("gone")

@pytest.fixture
async def own(shared):
    yield

async def test_by_chance(own):
    tries.append(1)
    assert len(tries) == 2, "the first time"

async def test_always(own):
    assert made.count("shared") == 1
    assert "gone" not in made
"""
HANGS_THEN = """
import time

tries = []

def test_by_chance():
    tries.append(1)
    if len(tries) == 2:
        time.sleep(60)
    raise AssertionError("the first time")
"""


def run(folder: Path, place: str, module: str, *arguments: str, **variables: str) -> tuple[int, str]:
    """The suite's own rules on one module in a folder of tests."""
    path = folder / "tests" / place / "test_it.py"
    path.parent.mkdir(parents=True)
    path.write_text(module)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout_method = thread\nfaulthandler_timeout = 50\n")
    given = ("-p", "tests.second_tries", "-p", "no:cacheprovider", "-ra", "--rerun-show-tracebacks")
    env = {name: value for name, value in os.environ.items() if not name.startswith("CYNOSURE_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *given, "--rootdir", str(folder), *arguments, str(path)],
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("place", ["query/worker", "robustness", "server"])
def test_with_processes_it_is_green_and_named(tmp_path: Path, place: str) -> None:
    code, output = run(tmp_path, place, FAILS_ONCE)

    assert code == 0, output
    assert "2 passed, 1 rerun" in output
    named = output.partition("rerun test summary info")[2]
    assert f"RERUN tests/{place}/test_it.py::test_by_chance" in named
    assert "the first time" in named


@pytest.mark.parametrize(
    "place", ["catalog", "persistence/backends", "query/redteam", "robustness/attacks/storage"]
)
def test_of_rules_it_is_red(tmp_path: Path, place: str) -> None:
    code, output = run(tmp_path, place, FAILS_ONCE)

    assert code == 1, output
    assert "1 failed, 1 passed" in output


def test_in_a_soak_it_is_red(tmp_path: Path) -> None:
    code, output = run(tmp_path, "query", FAILS_ONCE, CYNOSURE_SOAK="1")

    assert code == 1, output
    assert "1 failed, 1 passed" in output


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    code, output = run(tmp_path, "query", FAILS_ONCE.replace("== 2", "== 3"))

    assert code == 1, output
    assert "1 failed, 1 passed, 1 rerun" in output


def test_the_second_time_may_not_hang(tmp_path: Path) -> None:
    code, output = run(tmp_path, "query", HANGS_THEN, "--timeout=2")

    assert code == 1, output
    assert "Timeout" in output


def test_a_debugger_is_no_contradiction(tmp_path: Path) -> None:
    code, output = run(tmp_path, "query", "def test_it():\n    pass\n", "--pdb")

    assert code == 0, output
