"""`cynosure federation` as its users meet it."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Cynosure
from tests.cli.scripted_server import Script, serve

PAGE = {
    "checked": 3,
    "differences": [
        {
            "type": "table",
            "path": ["ns", "orders"],
            "difference": "gone",
            "grants": [{"role": "readers", "privileges": ["TABLE_LIST", "TABLE_READ_DATA"]}],
            "policies": ["ns.small"],
        }
    ],
    "nextPageToken": "more",
}
LAST = {
    "checked": 2,
    "differences": [
        {"type": "view", "path": ["ns", "v"], "difference": "moved", "movedTo": ["ns", "w"]},
        {"type": "table", "path": ["ns", "\x1b[31m"], "difference": "name-not-allowed"},
    ],
}


WAITING = {
    "checked": 0,
    "differences": [],
    "waiting": [
        {"type": "table", "path": ["ns", "\x1b[31m"], "policies": ["ns.own"]},
        {"type": "uuid", "uuid": "u-1", "path": ["ns"]},
    ],
}


@pytest.fixture
def who(tmp_path: Path) -> tuple[str, ...]:
    """Whoever asks a scripted server."""
    (tmp_path / "secret").write_text("secret-of-a-test")
    return "--client-id", "us", "--client-secret-file", str(tmp_path / "secret")


def create(cynosure: Cynosure) -> None:
    Path("token").write_text("a-token-of-a-test")
    made = cynosure(
        *("catalogs", "create", "far", "--type", "EXTERNAL", "--connection-type", "ICEBERG_REST"),
        *("--connection-uri", "http://127.0.0.1:1/", "--remote-auth", "BEARER"),
        *("--remote-token-file", "token"),
    )
    assert made.code == 0, made.err
    assert "cynosure federation status far" in made.err


def test_a_remote_that_does_not_answer_is_shown_and_ends_with_1(cynosure: Cynosure) -> None:
    create(cynosure)
    cynosure("catalogs", "create", "lake")

    shown = cynosure("federation", "status")
    as_json = cynosure("federation", "status", "far", "--json")

    assert (shown.code, as_json.code) == (1, 1)
    heading, *rows = shown.out.splitlines()
    assert heading.split()[:4] == ["CATALOG", "TYPE", "REACHABLE", "BREAKER"]
    assert [row.split()[:4] for row in rows] == [["far", "ICEBERG_REST", "RemoteUnavailable", "closed"]]
    (found,) = json.loads(as_json.out)
    assert (found["catalog"], found["reachable"]) == ("far", False)
    assert (found["reason"], found["field"]) == (
        "nothing listens at its address",
        "connectionConfigInfo.uri",
    )
    assert "far: nothing listens at its address (--connection-uri)\nFix: Correct host and port" in shown.err


def test_without_federated_catalogs_there_is_nothing_to_show(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    shown = cynosure("federation", "status")

    assert shown.code == 0
    assert "no federated catalog" in shown.err


def test_nothing_known_is_nothing_different(cynosure: Cynosure) -> None:
    create(cynosure)

    ended = cynosure("federation", "reconcile", "far")

    assert (ended.code, ended.out) == (0, "")
    assert "0 compared, 0 different." in ended.err


def test_differences_of_all_pages_are_shown_with_what_hangs_on_them(
    cynosure: Cynosure, who: tuple[str, ...]
) -> None:
    script = Script()
    script.answers = [(200, PAGE), (200, LAST)]
    with serve(script) as address:
        ended = cynosure("federation", "reconcile", "far", "--url", address, *who)

    assert ended.code == 1
    assert script.asked == [
        "POST /management/v1/cynosure/catalogs/far/reconcile?dryRun=true&pageSize=100",
        "POST /management/v1/cynosure/catalogs/far/reconcile?dryRun=true&pageSize=100&pageToken=more",
    ]
    _, orders, view, odd = ended.out.splitlines()
    assert orders.split() == (
        ["table", "ns.orders", "gone", "no", "readers:", "TABLE_LIST", "TABLE_READ_DATA", "ns.small"]
    )
    assert "moved to ns.w" in view
    assert "\x1b" not in odd
    assert "5 compared, 3 different." in ended.err
    assert "cynosure federation reconcile far --fix" in ended.err


def test_what_was_mended_ends_with_0(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    mended = [{**PAGE["differences"][0], "mended": True}]
    script.answers = [(200, {"checked": 1, "differences": mended})]
    with serve(script) as address:
        ended = cynosure("federation", "reconcile", "far", "--fix", "--json", "--url", address, *who)

    assert ended.code == 0
    assert "dryRun=false" in script.asked[0]
    assert json.loads(ended.out)["differences"][0]["mended"] is True


def test_a_dry_run_mends_nothing(cynosure: Cynosure) -> None:
    create(cynosure)

    ended = cynosure("federation", "reconcile", "far", "--fix", "--dry-run")

    assert ended.code == 1
    assert "Nothing is mended in a dry run" in ended.err


def test_what_waits_is_told_page_by_page(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    script.answers = [(200, {**WAITING, "nextPageToken": "more"}), (200, WAITING)]
    with serve(script) as address:
        told = cynosure("federation", "reconcile", "far", "--waiting", "--url", address, *who)

    assert told.code == 0
    heading, *rows = told.out.splitlines()
    assert heading.split() == ["FOR", "NAME", "UUID", "POLICIES"]
    assert [row.split()[0] for row in rows] == ["table", "uuid"] * 2
    assert "\x1b" not in told.out
    assert all("waiting=list" in each for each in script.asked)
    assert "4 wait" in told.err


def test_what_waits_is_given_up_only_when_that_is_said(cynosure: Cynosure, who: tuple[str, ...]) -> None:
    script = Script()
    script.answers = [(200, {"checked": 7, "differences": [], "forgotten": 5, "kept": 2})]
    with serve(script) as address:
        told = cynosure("federation", "reconcile", "far", "--forget-waiting", "--url", address, *who)

    assert (told.code, told.out) == (0, "")
    assert [each.partition("?")[2].split("&")[0] for each in script.asked] == ["waiting=forget"]
    assert "5 given up, 2 wait on" in told.err
    for flags in (("--fix", "--waiting"), ("--waiting", "--forget-waiting")):
        refused = cynosure("federation", "reconcile", "far", *flags)
        assert (refused.code, "Give one of them." in refused.err) == (1, True)
