"""The entry point as a function, in an empty directory and with nothing of this machine's configuration."""

import os
import sys
from pathlib import Path

import pytest

from cynosure.cli.main import run
from cynosure.testing.login import make_credential
from tests.cli.running import Cynosure, Ended


@pytest.fixture
def cynosure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cynosure:
    """Runs `cynosure` with these arguments."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CYNOSURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERMINAL_WIDTH", "100")
    root = make_credential()
    monkeypatch.setenv("CYNOSURE_BOOTSTRAP_CREDENTIALS", f"default,{root.client_id},{root.secret}")

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["cynosure", *arguments])
        capfd.readouterr()
        code = 0
        try:
            run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        return Ended(code, *capfd.readouterr())

    return call
