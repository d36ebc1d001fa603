"""`cynosure migrate` as its users meet it."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Cynosure
from tests.cli.scripted_server import Script, serve

STATE = {"phase": "none", "objects": [], "nextPageToken": None}
NAMESPACE = {"type": "namespace", "path": ["ns"], "outcome": "ready"}
STUCK = {"type": "table", "path": ["ns", "\x1b[31mt"], "outcome": "obstacle", "reason": "it is elsewhere"}


@pytest.fixture
def who(tmp_path: Path) -> tuple[str, ...]:
    """Whoever asks a scripted server."""
    (tmp_path / "secret").write_text("secret-of-a-test")
    return "--client-id", "us", "--client-secret-file", str(tmp_path / "secret")


def page(phase: str = "none", *objects: dict, token: str | None = None) -> tuple[int, dict]:
    return 200, {"phase": phase, "objects": objects, "nextPageToken": token}


SURVEYED = [page("none", NAMESPACE), page(), page("none", STUCK, token="more"), page(), page()]
"""Namespaces at the top, those in one, its tables on two pages, its views."""


def test_a_dry_run_tells_obstacles_of_all_pages_and_ends_with_1(
    cynosure: Cynosure, who: tuple[str, ...], tmp_path: Path
) -> None:
    script, report = Script(), tmp_path / "report.json"
    script.answers = [*SURVEYED, page()]
    with serve(script) as address:
        ended = cynosure("migrate", "far", "--dry-run", "--report", str(report), "--url", address, *who)

    assert ended.code == 1
    assert set(script.asked) == {"POST /management/v1/cynosure/catalogs/far/migration"}
    assert len(script.asked) == 6
    heading, *rows = ended.out.splitlines()
    assert heading.split() == ["TYPE", "NAME", "OUTCOME", "REASON"]
    assert [row.split()[0] for row in rows] == ["namespace", "table"]
    assert "\x1b" not in ended.out
    assert "it is elsewhere" in rows[1]
    assert "1 of them cannot be moved. Nothing was changed." in ended.err
    assert [each["outcome"] for each in json.loads(report.read_text())] == ["ready", "obstacle"]


def test_a_report_that_cannot_be_written_ends_it_before_anything_is_asked(
    cynosure: Cynosure, who: tuple[str, ...], tmp_path: Path
) -> None:
    script = Script()
    with serve(script) as address:
        ended = cynosure(
            "migrate", "far", "--yes", "--report", str(tmp_path / "none" / "x"), "--url", address, *who
        )

    assert ended.code == 1
    assert script.asked == []
    assert "The file cannot be written" in ended.err
    assert "field: --report" in ended.err


def test_a_report_that_finds_no_room_at_the_end_hides_nothing_of_what_was_moved(
    cynosure: Cynosure, who: tuple[str, ...]
) -> None:
    script = Script()
    script.answers = [*SURVEYED, page()]
    with serve(script) as address:
        ended = cynosure("migrate", "far", "--dry-run", "--report", "/dev/full", "--url", address, *who)

    assert ended.code == 1
    assert "1 of them cannot be moved. Nothing was changed." in ended.err
    assert "The file cannot be written" in ended.err
    assert "No space left" in ended.err


def test_with_obstacles_nothing_is_begun(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    script.answers = [page(), *SURVEYED, page()]
    with serve(script) as address:
        ended = cynosure("migrate", "far", "--yes", "--json", "--url", address, *who)

    assert ended.code == 1
    told = json.loads(ended.out)
    assert (told["phase"], len(told["objects"])) == ("none", 2)
    assert len(script.asked) == 7


def test_one_that_is_done_is_done(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    script.answers = [page("done")]
    with serve(script) as address:
        ended = cynosure("migrate", "far", "--yes", "--url", address, *who)

    assert ended.code == 0
    assert "far is a catalog of this server already" in ended.err


def test_what_was_moved_before_is_told_and_ends_with_0(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    there = {"type": "table", "path": ["ns", "t"], "outcome": "there", "reason": "moved on some day"}
    script.answers = [page(), page(), page("none", there), page()]
    with serve(script) as address:
        ended = cynosure(
            "migrate", "far", "--into", "ours", "--table", "ns.t", "--yes", "--url", address, *who
        )

    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[1].split(maxsplit=3) == ["table", "ns.t", "there", "moved on some day"]
    assert "ours got all of it before: nothing was left to do." in ended.err
    steps = [json.loads(body)["step"] for body in script.bodies]
    assert steps == ["status", "survey", "moved", "status"]


def test_nothing_is_asked_for_by_who_does_not_go_on(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    with serve(script) as address:
        ended = cynosure("migrate", "far", "--url", address, *who)

    assert ended.code == 1
    assert script.asked == []


def test_giving_up_is_nothing_else(cynosure: Cynosure) -> None:
    ended = cynosure("migrate", "far", "--cancel", "--dry-run")

    assert ended.code == 1
    assert "Give it alone." in ended.err


def test_a_catalog_without_a_remote_is_refused(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    ended = cynosure("migrate", "lake", "--dry-run")

    assert ended.code == 1
    assert "The catalog has no remote" in ended.err


def test_into_another_catalog_it_cedes_and_gives_before_the_remote_drops(
    cynosure: Cynosure, who: tuple[str, ...]
) -> None:
    script = Script()
    ready = {"type": "table", "path": ["ns", "t"], "outcome": "ready"}
    taken = {**ready, "outcome": "taken"}
    surveyed = [page("none", NAMESPACE), page(), page("none", ready), page()]
    walked = [
        page("taking", {**NAMESPACE, "outcome": "taken"}),
        page("taking"),
        page("taking"),
        page("taking"),
    ]
    ended = [page("giving"), page("giving", {**ready, "outcome": "given"}), page("releasing"), page("done")]
    begun = (200, {**page("taking")[1], "into": "ours"})
    script.answers = [
        page(),
        *surveyed,
        page(),
        page(),
        begun,
        *walked,
        page("taking", taken),
        page("taking"),
        *ended,
    ]
    with serve(script) as address:
        told = cynosure(
            "migrate", "far", "--into", "ours", "--table", "ns.t", "--yes", "--url", address, *who
        )

    assert told.code == 0, told.err
    assert "ours has them now." in told.err
    assert "Grants do not come along" in told.err
    steps = [json.loads(body) for body in script.bodies]
    assert [each["step"] for each in steps[-4:]] == ["cede", "give", "release", "finish"]
    (begin,) = [each for each in steps if each["step"] == "begin"]
    assert (begin["into"], begin["tables"]) == ("ours", [["ns", "t"]])


def test_a_table_without_a_namespace_and_policies_that_stay_anyway_are_refused(cynosure: Cynosure) -> None:
    for words, fix in (
        (("--table", "orders"), "Write it as in eu.orders."),
        (("--leave-policies",), "Leave it out."),
    ):
        ended = cynosure("migrate", "far", "--dry-run", *words)
        assert ended.code == 1
        assert fix in ended.err
