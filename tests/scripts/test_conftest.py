"""What the suite's own rules do to tests that lack what they need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
MODULE = """
def test_compares(specs):
    assert (specs / "spec.md").exists()

def test_asks_the_database(postgres_url):
    pass

def test_needs_nothing():
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_it.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  postgres: x\n  specs: x\naddopts = -ra\n")
    return tmp_path


def run(suite: Path, **variables: str) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("CYNOSURE_")} | variables
    env["PYTHONPATH"] = str(CONFTEST.parents[1])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(suite)]
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_without_what_they_need_spec_tests_are_named_and_service_tests_fail(suite: Path):
    code, output = run(suite)
    assert "specs: test_it.py::test_compares: CYNOSURE_SPECS is not set" in output
    assert "ERROR test_it.py::test_asks_the_database" in output
    assert "scripts/services start" in output
    assert "1 passed, 1 skipped, 1 error" in output
    assert code == 1


def test_with_what_they_need_all_run(suite: Path):
    (suite / "spec.md").touch()
    code, output = run(suite, CYNOSURE_SPECS=str(suite), CYNOSURE_TEST_POSTGRES="postgresql://x")
    assert (code, "3 passed" in output) == (0, True), output


def test_a_specification_folder_that_is_not_there_fails(suite: Path):
    code, output = run(suite, CYNOSURE_SPECS=str(suite / "absent"), CYNOSURE_TEST_POSTGRES="postgresql://x")
    assert code == 1
    assert "CYNOSURE_SPECS is not a folder" in output
