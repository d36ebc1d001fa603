"""`cynosure sql` against a gateway that answers what the test has written."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.query.errors import QueryFailed, SqlError
from cynosure.testing.scripted_statements import Script, ScriptedStatements
from tests.cli.running import Cynosure, Ended

Sql = Callable[..., Ended]
PEOPLE = pa.table({"id": [1, 2], "name": ["Ann", None]})
ODD = pa.table(
    {
        "text": ["a,b", 'say "x"', "", None, "NULL", "two\nlines", "\x1b[2J", "tab\there", "a|b"],
        "list": [[1, None], None, [], [2], [3], [4], [5], [6], [7]],
    }
)


def test_rows_are_shown_as_a_table(sql: Sql, statements: ScriptedStatements) -> None:
    statements.scripts["SELECT * FROM t"] = Script.of(PEOPLE)

    ended = sql("-c", "SELECT * FROM t;")

    assert ended == (
        0,
        " id | name\n----+------\n  1 | Ann\n  2 | NULL\n",
        "(2 rows)\n",
    )
    [request] = statements.requests
    assert (request.catalog, request.namespace, request.timeout_s) == ("lake", (), None)
    assert statements.canceled == []


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("csv", "id,name\n1,Ann\n2,\n"),
        ("tsv", "id\tname\n1\tAnn\n2\t\n"),
        ("jsonl", '{"id":1,"name":"Ann"}\n{"id":2,"name":null}\n'),
        ("json", '[\n{"id":1,"name":"Ann"},\n{"id":2,"name":null}\n]\n'),
        ("markdown", "| id | name |\n| ---: | --- |\n| 1 | Ann |\n| 2 | NULL |\n"),
        ("vertical", "-[ 1 ]---\nid   | 1\nname | Ann\n-[ 2 ]---\nid   | 2\nname | NULL\n"),
    ],
)
def test_every_format_has_all_rows_of_all_pages(
    sql: Sql, statements: ScriptedStatements, format_: str, expected: str
) -> None:
    statements.scripts["SELECT 1"] = Script.of(PEOPLE.slice(0, 1), PEOPLE.slice(1))

    assert sql("-c", "SELECT 1", "--format", format_).out == expected


def test_programs_read_back_exactly_what_was_there(sql: Sql, statements: ScriptedStatements) -> None:
    statements.scripts["SELECT 1"] = Script.of(ODD)
    expected = ODD.to_pylist()

    as_json = json.loads(sql("-c", "SELECT 1", "--json").out)
    as_csv = sql("-c", "SELECT 1", "--format", "csv").out
    as_tsv = sql("-c", "SELECT 1", "--format", "tsv").out

    assert as_json == expected
    for text, separator in ((as_csv, ","), (as_tsv, "\t")):
        _, *rows = csv.reader(text.splitlines(keepends=True), delimiter=separator)
        assert [row[0] for row in rows] == [each["text"] or "" for each in expected]
    assert as_csv.splitlines()[3:5] == ['"",[]', ",[2]"], "an empty text is not NULL"


@pytest.mark.parametrize("format_", ["table", "vertical", "markdown"])
def test_no_text_of_a_row_reaches_a_terminal_and_null_is_no_text(
    sql: Sql, statements: ScriptedStatements, format_: str
) -> None:
    statements.scripts["SELECT 1"] = Script.of(ODD)

    shown = sql("-c", "SELECT 1", "--format", format_).out

    assert "\x1b" not in shown
    assert "'NULL'" in shown
    assert (r"\\x1b[2J" if format_ == "markdown" else r"\x1b[2J") in shown


def test_arrow_is_one_stream_of_all_pages(sql: Sql, statements: ScriptedStatements, tmp_path: Path) -> None:
    statements.scripts["SELECT 1"] = Script.of(PEOPLE.slice(0, 1), PEOPLE.slice(1))

    assert sql("-c", "SELECT 1", "--format", "arrow", "--output", "rows.arrow").code == 0

    with pa.ipc.open_stream((tmp_path / "rows.arrow").read_bytes()) as reader:
        assert reader.read_all() == PEOPLE


def test_times_are_short_for_people_and_whole_for_programs(sql: Sql, statements: ScriptedStatements) -> None:
    times = pa.table(
        {
            "at": pa.array([0, 1_500_000], pa.timestamp("us", "UTC")),
            "local": pa.array([0, 1], pa.timestamp("us")),
        }
    )
    statements.scripts["SELECT 1"] = Script.of(times)

    assert sql("-c", "SELECT 1").out.splitlines()[2:] == [
        " 1970-01-01 00:00:00Z   | 1970-01-01 00:00:00",
        " 1970-01-01 00:00:01.5Z | 1970-01-01 00:00:00.000001",
    ]
    assert (
        "1970-01-01T00:00:00.000000Z,1970-01-01T00:00:00.000000"
        in sql("-c", "SELECT 1", "--format", "csv").out
    )


def test_columns_of_one_name_are_all_there_in_json(sql: Sql, statements: ScriptedStatements) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "a_2"])
    statements.scripts["SELECT 1"] = Script.of(table)

    assert json.loads(sql("-c", "SELECT 1", "--json").out) == [{"a": 1, "a_2": 2, "a_2_2": 3}]


def test_a_table_is_cut_and_says_so_and_the_statement_is_ended(
    sql: Sql, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(*[pa.table({"a": range(10)})] * 5)

    ended = sql("-c", "SELECT 1", "--max-rows", "12")

    assert len(ended.out.splitlines()) == 2 + 12
    assert "12 rows shown, there are more" in ended.err
    assert len(statements.canceled) == 1
    assert len(sql("-c", "SELECT 1", "--max-rows", "0").out.splitlines()) == 2 + 50


def test_statements_of_files_and_flags_run_in_order_until_one_fails(
    sql: Sql, statements: ScriptedStatements, tmp_path: Path
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    statements.scripts["SELECT 2"] = Script(refusal=SqlError("Not SQL", fix="Write SQL.", line=1, column=8))
    (tmp_path / "q.sql").write_text("-- first\nUSE other.ns;\nSELECT 1; SELECT 2; SELECT 3;")

    ended = sql("-c", "SELECT 1", "-f", "q.sql", "--format", "csv")

    assert (ended.code, ended.out) == (1, "a\n1\na\n1\n")
    assert [(each.sql, each.catalog, each.namespace) for each in statements.requests] == [
        ("SELECT 1", "lake", ()),
        ("SELECT 1", "other", ("ns",)),
        ("SELECT 2", "other", ("ns",)),
    ]
    assert ended.err == (
        "  SELECT 2\n         ^\nError: Not SQL\n  file: q.sql\n  line: 3, column 18\nFix: Write SQL.\n"
    )


def test_a_value_goes_with_the_statements_that_name_it(sql: Sql, statements: ScriptedStatements) -> None:
    texts = ("SELECT :a", "SELECT ':a', b::c -- :a", "SELECT :b + :a")
    for text in texts:
        statements.scripts[text] = Script.of(pa.table({"a": [1]}))

    ended = sql("-c", ";".join(texts).replace(" -- :a;", " -- :a\n;"), "--param", "a=1", "--param", "b=2")

    assert ended.code == 0, ended.err
    assert [each.parameters for each in statements.requests] == [{"a": 1}, [], {"a": 1, "b": 2}]


def test_a_statement_that_fails_while_it_runs_is_exit_code_1(
    sql: Sql, statements: ScriptedStatements
) -> None:
    error = QueryFailed("The statement divides by zero", condition="DIVIDE_BY_ZERO", fix="Use try_divide.")
    statements.scripts["SELECT 1"] = Script([pa.table({"a": [1]})], error)

    ended = sql("-c", "SELECT 1", "--format", "csv")

    assert (ended.code, ended.out) == (1, "a\n1\n"), "whole lines before the error"
    assert (
        "Error: The statement divides by zero\n  condition: DIVIDE_BY_ZERO\nFix: Use try_divide." in ended.err
    )


def test_explain_is_text_and_not_a_table(sql: Sql, statements: ScriptedStatements) -> None:
    statements.scripts["EXPLAIN SELECT 1"] = Script.of(pa.table({"plan": ["engine: local", "  rows\x07"]}))

    ended = sql("-c", "EXPLAIN SELECT 1")

    assert (ended.out, ended.err) == ("engine: local\n  rows\\x07\n", "")


def test_flags_go_with_the_statement(sql: Sql, statements: ScriptedStatements) -> None:
    statements.scripts["SELECT :a"] = Script.of(pa.table({"a": [1]}))

    arguments = (
        "--catalog",
        "c",
        "--namespace",
        "a.b",
        "--timeout",
        "2m",
        "--param",
        "a=5",
        "--param",
        "b=x=y",
    )
    ended = sql("-c", "SELECT :a", *arguments, "--timing")

    [request] = statements.requests
    assert (request.catalog, request.namespace, request.timeout_s) == ("c", ("a", "b"), 120.0)
    assert request.parameters == {"a": 5, "b": "x=y"}
    assert "(1 row, 0.01 s, local, under ns.hide)" in ended.err


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("-c", "SELECT 1", "--format", "xml"), "--format"),
        (("-c", "SELECT 1", "--param", "5"), "--param"),
        (("-c", "SELECT 1", "--timeout", "soon"), "--timeout"),
        (("-c", "SELECT 1", "--namespace", "a..b"), "--namespace"),
        (("-f", "missing.sql"), "--file"),
        (("-c", "-- nothing"), "--command"),
        (("-c", "SELECT 1", "--output", "no/such/dir"), "--output"),
        (("-c", "SELECT 1", "--gateway", "ftp://x"), "--gateway"),
    ],
)
def test_wrong_flags_are_named(sql: Sql, arguments: tuple[str, ...], field: str) -> None:
    ended = sql(*arguments)

    assert ended.code == 1
    assert f"field: {field}" in ended.err
    assert "Fix:" in ended.err


def test_without_a_gateway_the_command_says_how_to_get_one(cynosure: Cynosure) -> None:
    ended = cynosure("sql", "-c", "SELECT 1")

    assert ended.code == 1
    assert "No gateway runs on this data directory" in ended.err
    assert "cynosure up" in ended.err


def test_a_profile_names_its_gateway(
    cynosure: Cynosure, gateway: str, statements: ScriptedStatements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CYNOSURE_CLIENT_SECRET", "not-a-secret")
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    made = cynosure(
        "profiles", "create", "p", "--url", gateway, "--gateway", gateway, "--client-id", "x", "--default"
    )
    assert made.code == 0, made.err

    assert cynosure("sql", "-c", "SELECT 1", "--format", "csv").out == "a\n1\n"
    refused = cynosure("profiles", "update", "p", "--gateway", "http://other.example:1")
    assert refused.code == 1
    assert "without TLS" in refused.err


def test_ctrl_c_ends_the_statement_at_the_gateway(
    gateway: str, statements: ScriptedStatements, tmp_path: Path
) -> None:
    statements.scripts["SELECT slow"] = Script.of(pa.table({"a": [1]}))
    statements.scripts["SELECT slow"].is_held = True
    # Python restores its own handler only where the signal was not ignored: a shell in the background does
    # that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from cynosure.cli.main import run; run()"
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", program, "sql", "-c", "SELECT slow", "--client-id", "a"),
            *("--url", gateway, "--gateway", gateway),
        ],
        env={**os.environ, "CYNOSURE_CLIENT_SECRET": "x", "XDG_CONFIG_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    give_up_s = time.monotonic() + 60
    while not statements.statements and time.monotonic() < give_up_s:
        time.sleep(0.01)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert statements.canceled == list(statements.statements)
