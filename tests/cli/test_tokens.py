import json
import subprocess
import sys
from pathlib import Path


def cynosure(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from cynosure.cli.main import run; run()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_keys_are_rotated_and_shown_without_a_server(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert cynosure("store", "init", "--data", data).returncode == 0

    rotated = cynosure("tokens", "rotate", "--data", data, "--json")
    shown = cynosure("tokens", "keys", "--data", data)
    failed = cynosure("tokens", "keys", "--realm", "nowhere", "--data", data)

    (key,) = json.loads(rotated.stdout)
    assert shown.stdout.splitlines()[0].split("  ")[0] == "KEY"
    assert shown.stdout.splitlines()[1].startswith(key["kid"])
    assert failed.returncode == 1
    assert "Realm does not exist" in failed.stderr
