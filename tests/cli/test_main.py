"""The command line as its users meet it: its output and its exit codes."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cynosure import __version__
from cynosure.cli.main import GROUPS
from cynosure.common.errors import Misconfigured
from tests.cli.running import Cynosure

NAMES = [name for _, name, _, _ in GROUPS]


def test_the_command_runs_as_a_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cynosure", "--version"]

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, f"cynosure {__version__}\n")


def test_help_teaches_the_first_steps(cynosure: Cynosure) -> None:
    done = cynosure("--help")

    assert done.code == 0
    for word in ("up", "serve", "status", "settings", "certs", "cynosure up --data ./data"):
        assert word in done.out


@pytest.mark.parametrize("group", NAMES)
def test_every_group_of_the_list_is_there_and_explains_itself(cynosure: Cynosure, group: str) -> None:
    done = cynosure(group, "--help")

    assert done.code == 0, done.err
    assert "Usage: cynosure " + group in done.out


@pytest.mark.parametrize(
    "command",
    [
        ("catalogs", "create"),
        ("catalogs", "update"),
        ("generic-tables", "create"),
        ("policies", "attach"),
        ("principals", "create"),
        ("setup", "apply"),
    ],
)
def test_help_on_a_narrow_terminal_shows_flags_whole(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)

    done = cynosure(*command, "--help")

    assert done.code == 0, done.err
    assert max(len(line) for line in done.out.splitlines()) == 80
    # The second name of a flag may be cut; what there is to write is whole.
    assert re.findall(r"(?<!,)--[a-z0-9-]+…", done.out) == []


@pytest.mark.parametrize("arguments", [("nope",), ("serve", "catalog", "--port", "many"), ("up", "--nope")])
def test_wrong_usage_is_exit_code_2_without_a_traceback(
    cynosure: Cynosure, arguments: tuple[str, ...]
) -> None:
    done = cynosure(*arguments)

    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err


def test_an_error_is_one_readable_block_and_exit_code_1(cynosure: Cynosure) -> None:
    Path("cynosure.toml").write_text("[server]\nprot = 1\n")

    done = cynosure("settings", "show")

    assert done.code == 1
    assert done.out == ""
    assert done.err.splitlines()[0].startswith("Error: ")
    assert "server.prot" in done.err
    assert "cynosure.toml:2" in done.err
    assert done.err.splitlines()[-1].startswith("Fix: Did you mean server.port?")


def test_debug_lets_the_error_pass_with_its_traceback(cynosure: Cynosure) -> None:
    Path("cynosure.toml").write_text("[server]\nprot = 1\n")

    with pytest.raises(Misconfigured):
        cynosure("--debug", "settings", "show")


def test_status_without_a_server_runs_here_and_says_so(cynosure: Cynosure) -> None:
    plain = cynosure("status", "--data", "data")
    as_json = cynosure("status", "--data", "data", "--json")

    assert (plain.code, as_json.code) == (1, 1)
    assert "not running" in plain.out
    assert json.loads(as_json.out)["is_running"] is False


def test_settings_show_what_is_in_force_and_mask_secrets(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("cynosure.toml").write_text('[server]\nport = 9999\nshutdown_grace = "90s"\n')
    monkeypatch.setenv("CYNOSURE_PERSISTENCE__URL", "postgresql://me:hunter2@db/x")

    plain = cynosure("settings", "show")
    as_json = cynosure("settings", "show", "--json")

    assert plain.code == 0, plain.err
    assert "server.port = 9999" in plain.out
    assert "server.shutdown_grace = 1m30s" in plain.out
    assert "persistence.url = ***" in plain.out
    assert json.loads(as_json.out)["server"]["port"] == 9999
    assert "hunter2" not in plain.out + plain.err + as_json.out + as_json.err


def test_the_settings_reference_is_printed(cynosure: Cynosure) -> None:
    done = cynosure("settings", "reference")

    assert done.code == 0
    assert "max_body_bytes" in done.out


def test_certificates_are_made_shown_and_never_overwritten(cynosure: Cynosure) -> None:
    made = cynosure("certs", "init", "--host", "catalog.example.org")
    shown = cynosure("certs", "show", "--json")
    again = cynosure("certs", "init")

    assert made.code == 0, made.err
    assert "--tls-cert certs/server.pem" in made.err
    server = next(found for found in json.loads(shown.out) if found["file"].endswith("server.pem"))
    assert server["names"] == ["catalog.example.org"]
    assert again.code == 1
    assert "not overwritten" in again.err


def test_ctrl_c_is_exit_code_130(tmp_path: Path) -> None:
    # A server that accepts and never answers, so that the command certainly waits when the signal comes. One
    # that comes while Python is in a destructor is lost there, so it is sent again as people press again. And
    # whoever runs the tests in the background of a shell has them, and all they start, ignore it.
    program = (
        "import os, signal, socket, subprocess, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "server = socket.socket(socket.AF_UNIX); server.bind('data/operator.sock'); server.listen()\n"
        "command = subprocess.Popen([sys.executable, '-m', 'cynosure', 'status', '--data', 'data'])\n"
        "server.accept()\n"
        "waiting, _ = server.accept(); waiting.recv(10)\n"
        "while command.poll() is None:\n"
        "    command.send_signal(signal.SIGINT)\n"
        "    try: command.wait(2)\n"
        "    except subprocess.TimeoutExpired: pass\n"
        "print(command.returncode)\n"
    )
    (tmp_path / "data").mkdir()

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )

    assert done.stdout.strip() == str(128 + signal.SIGINT)
    assert "Traceback" not in done.stderr
