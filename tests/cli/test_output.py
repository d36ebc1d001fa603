import io

import pytest

from cynosure.cli.output import print_error, print_fields, print_table, show_progress
from cynosure.common.errors import Conflict
from cynosure.common.progress import Progress


def test_an_error_names_what_details_and_fix(capsys) -> None:
    print_error(Conflict("The head has moved", fix="Look again.", head=7, name="a\nb"))

    assert capsys.readouterr().err == (
        "Error: The head has moved\n  head: 7\n  name: 'a\\nb'\nFix: Look again.\n"
    )


def test_progress_is_plain_lines_without_a_terminal(capsys) -> None:
    with show_progress() as report:
        report(Progress("Marking", 5, 10))
        report(Progress("Sweeping", 3))
        report(Progress("Done"))

    assert capsys.readouterr().err == "Marking 5/10\nSweeping 3\nDone\n"


def test_progress_on_a_terminal_is_drawn_and_cleaned_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with show_progress() as report:
        report(Progress("Marking [red]", 5, 10))

    assert "Marking [red]" in terminal.getvalue()
    assert "5/10" in terminal.getvalue()


def test_absent_fields_are_left_out(capsys) -> None:
    print_fields({"server": "running", "pid": None, "x": 0})

    assert capsys.readouterr().out == "server  running\nx       0\n"


def test_what_users_chose_gives_the_terminal_no_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """A property may hold anything; an administrator only wants to look at it."""
    hostile = "\x1b]0;owned\x07\x9b2J\u202eevil\nroot  yes"

    print_fields({"  comment": hostile})
    print_table(("NAME", "VALUE"), [("é", hostile)])

    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\u202e")
    assert len(out.splitlines()) == 3
    assert "é" in out
