"""The prompt, on a terminal of its own."""

import codecs
import os
import pty
import re
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.query.errors import SqlError
from cynosure.testing.scripted_statements import Script, ScriptedStatements

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
_CUT = re.compile(r"\x1b(\[[0-9;?]*)?\Z")
"""The beginning of such a sequence."""
_PATIENCE_S = 60.0


class Terminal:
    """A process on a pseudo-terminal."""

    def __init__(self, argv: list[str], environment: dict[str, str], directory: Path) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40", **environment},
            cwd=directory,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""
        # What comes may be cut anywhere.
        self._unread = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, *, pressing: str = "") -> str:
        """Until this is shown; what was shown up to it since the last time. `pressing`: now and then."""
        give_up_s = time.monotonic() + _PATIENCE_S
        while text not in self._seen:
            assert time.monotonic() < give_up_s, f"{text!r} is not in {self._seen!r}"
            ready, _, _ = select.select([self._ours], [], [], 0.5)
            if not ready:
                self.type(pressing)
                continue
            try:
                chunk = self._unread + self._decoder.decode(os.read(self._ours, 65536))
            except OSError as error:
                raise AssertionError(f"{text!r} is not in {self._seen!r}") from error
            whole = _CUT.sub("", chunk)
            chunk, self._unread = whole, chunk[len(whole) :]
            if "\x1b[6n" in chunk:
                # The prompt asks where the cursor is, as every terminal knows.
                os.write(self._ours, b"\x1b[1;1R")
            self._seen += _CONTROL.sub("", chunk)
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self._ours)


Start = Callable[..., Terminal]


@pytest.fixture
def start(gateway: str, tmp_path: Path) -> Iterator[Start]:
    started: list[Terminal] = []

    def open_terminal(*arguments: str) -> Terminal:
        argv = [sys.executable, "-m", "cynosure", "sql", "--url", gateway, "--gateway", gateway, *arguments]
        environment = {
            "CYNOSURE_CLIENT_ID": "alice",
            "CYNOSURE_CLIENT_SECRET": "x",
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        started.append(Terminal(argv, environment, tmp_path))
        started[-1].wait_for("lake>")
        return started[-1]

    yield open_terminal
    for each in started:
        each.close()


def test_statements_of_several_lines_run_and_errors_point_at_their_place(
    start: Start, statements: ScriptedStatements, tmp_path: Path
) -> None:
    statements.scripts["SELECT id\nFROM t"] = Script.of(pa.table({"id": [1, 2]}))
    statements.scripts["SELECT nope"] = Script(
        refusal=SqlError("No such column", fix="See.", line=1, column=8)
    )
    terminal = start()

    terminal.type("SELECT id\rFROM t;\r")
    shown = terminal.wait_for("(2 rows)")
    terminal.type("\\timing\r")
    terminal.wait_for("Timing is on.")
    terminal.type("USE other.ns;\r")
    terminal.wait_for("other.ns>")
    terminal.type("\\format csv\r")
    terminal.type("SELECT nope;\r")
    failed = terminal.wait_for("Fix: See.")
    terminal.type("\\q\r")

    assert terminal.process.wait(30) == 0
    assert "id\n----\n  1\n  2\n" in shown.replace(" \n", "\n")
    assert "SELECT nope\n         ^\n" in failed
    assert statements.requests[-1].namespace == ("ns",)
    history = tmp_path / "state" / "cynosure" / "sql_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+FROM t;" in history.read_text()


def test_ctrl_c_ends_the_statement_and_not_the_prompt(start: Start, statements: ScriptedStatements) -> None:
    statements.scripts["SELECT slow"] = Script.of(pa.table({"a": [1]}))
    statements.scripts["SELECT slow"].is_held = True
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [7]}))
    terminal = start()

    terminal.type("SELECT slow;\r")
    terminal.wait_for("running")
    terminal.process.send_signal(2)
    terminal.wait_for("Canceled.")
    terminal.type("SELECT 1;\r")
    terminal.wait_for("(1 row)")
    # Before the prompt is back, the terminal itself would take it.
    terminal.wait_for("lake>")
    terminal.type("\x04")

    assert terminal.process.wait(30) == 0
    assert len(statements.canceled) == 1


def test_tab_completes_keywords_and_functions(start: Start, statements: ScriptedStatements) -> None:
    statements.scripts["SHOW FUNCTIONS"] = Script.of(pa.table({"function": ["regexp_extract_all"]}))
    statements.scripts["SELECT regexp_extract_all("] = Script.of(pa.table({"a": [1]}))
    terminal = start()

    terminal.type("SEL\t")
    terminal.wait_for("SELECT")
    terminal.type(" regexp_ex\t")
    # They are asked for meanwhile.
    terminal.wait_for("tract_all(", pressing="\t")
    terminal.type(";\r")
    terminal.wait_for("(1 row)")

    assert [each.sql for each in statements.requests] == ["SHOW FUNCTIONS", "SELECT regexp_extract_all("]


def test_the_bar_is_gone_before_text_is_shown(start: Start, statements: ScriptedStatements) -> None:
    statements.scripts["EXPLAIN SELECT 1"] = Script.of(pa.table({"plan": ["engine: local", "user: ann"]}))
    terminal = start()

    terminal.type("EXPLAIN SELECT 1;\r")
    shown = terminal.wait_for("user: ann")

    assert "\nengine: local\n" in shown


def test_a_table_that_is_too_wide_is_shown_one_value_per_line(
    start: Start, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": ["x" * 150], "b": [None]}))
    terminal = start()

    terminal.type("SELECT 1;\r")
    shown = terminal.wait_for("(1 row)")

    assert "-[ 1 ]-" in shown
    assert "b | NULL" in shown
