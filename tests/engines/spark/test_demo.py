"""The tour runs the programs of README.md as they stand there, but for the port, and checks their output."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run_demo(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "scripts/demo", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That is what exists today" in done.stdout
    assert "client secret  ********" in done.stdout
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_the_demo_ends_by_itself_without_a_terminal():
    output = run_demo()

    assert "16 appends answered" in output
    assert "1 of 19 files" in output
    assert "ann MAY NOT commit-table" in output
    assert "policies='shop.only-charts'" in output
    assert "0 files in file://DATA/warehouse/main/shop/drafts" in output
    assert "5 → 1" in output
    assert "condition: DIVIDE_BY_ZERO" in output
    assert "engine: spark-isolated (outside of the local subset" in output


@pytest.mark.timeout(600)
def test_the_demo_on_s3_vends_and_shows_no_key(s3_url: str):
    output = run_demo("--s3")

    assert "s3.session-token = ********" in output
    assert "2 rows in 1 files are in snapshot" in output
    assert output.count("access denied") == 5
    assert "Table drafts is gone, and its files are." in output
    assert "5 → 1" in output
    assert "row filter: region in (1 values)" in output
    assert str(urlsplit(s3_url).password) not in output


def test_the_demo_says_what_it_takes():
    done = subprocess.run(
        [sys.executable, "scripts/demo", "--gcs"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "./dev demo --s3" in done.stderr
