"""The tour runs the programs of README.md as they stand there, but for the port, and checks their output."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(175)
def test_the_demo_ends_by_itself_without_a_terminal():
    done = subprocess.run(
        [sys.executable, "scripts/demo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That is what exists today" in done.stdout
    assert "ann MAY NOT commit-table" in done.stdout
    assert "client secret  ********" in done.stdout
