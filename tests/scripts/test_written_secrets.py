"""A run that wrote a secret fails, whatever its tests say, and names the place."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """
import json, logging, secrets
from cynosure.testing.login import make_credential

secret = make_credential("root").secret
"""
LEAKING = """
def test_file(tmp_path):
    (tmp_path / "server.log").write_text("x " + secret)

def test_output():
    print("secret", secret)

def test_log(caplog):
    logging.warning(secret)

def test_another_server(tmp_path):
    made = secrets.token_hex(16)
    (tmp_path / "root-credentials.json").write_text(json.dumps([made]))
    (tmp_path / "up.log").write_text(f"root: {made} " * 2)
"""
CLEAN = """
def test_clean(tmp_path):
    (tmp_path / "a.secret").write_text(secret)
    (tmp_path / "other.log").write_text(secrets.token_hex(16))
    made = secrets.token_hex(16)
    (tmp_path / "root-credentials.json").write_text(json.dumps([made]))
    (tmp_path / "up.log").write_text(f"root: {made}")
"""


def run(folder: Path, module: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(HEAD + module)
    command = [sys.executable, "-m", "pytest", "-p", "tests.written_secrets", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "--basetemp", str(folder / "temporary"), str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Or the search of the run around this one finds it as well.
    shutil.rmtree(folder / "temporary", ignore_errors=True)
    return done.returncode, done.stdout


def test_a_secret_fails_the_run_and_every_place_is_named(tmp_path: Path):
    code, output = run(tmp_path, LEAKING)

    assert code == 1, output
    assert "4 passed" in output
    named = output.partition("secrets in what the run wrote")[2]
    places = (
        "test_file0/server.log",
        "::test_output (captured stdout call)",
        "::test_log (captured log call)",
    )
    assert all(place in named for place in (*places, "test_another_server0/up.log")), output


def test_a_run_that_wrote_none_passes(tmp_path: Path):
    code, output = run(tmp_path, CLEAN)

    assert (code, "secrets in what" in output) == (0, False), output
