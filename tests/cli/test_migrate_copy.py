"""`cynosure migrate --copy` as its users meet it: flags, and a copy without a server."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Cynosure
from tests.cli.scripted_server import Script, serve
from tests.cli.test_table_append import WHERE, place, read, write

__all__ = ["place"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--copy",), "Say which, with --into CATALOG."),
        (("--copy", "--into", "ours", "--keep-remote"), "A copy changes nothing at the remote"),
        (("--copy", "--into", "ours", "--cancel"), "A copy changes nothing at the remote"),
        (("--copy", "--into", "ours", "--writers-stopped"), "A copy changes nothing at the remote"),
        (("--copy", "--into", "theirs", "--yes"), "A catalog cannot be copied into itself"),
    ],
)
def test_flags_that_mean_nothing_for_a_copy_are_refused(
    cynosure: Cynosure, words: tuple[str, ...], told: str
) -> None:
    cynosure("catalogs", "create", "theirs")

    ended = cynosure("migrate", "theirs", *words)

    assert ended.code == 1
    assert told in ended.err


def test_nothing_is_asked_for_by_who_does_not_go_on(cynosure: Cynosure, tmp_path: Path) -> None:
    script = Script()
    (tmp_path / "secret").write_text("secret-of-a-test")
    who = ("--client-id", "us", "--client-secret-file", str(tmp_path / "secret"))
    with serve(script) as address:
        ended = cynosure("migrate", "theirs", "--copy", "--into", "ours", "--url", address, *who)

    assert ended.code == 1
    assert "are copied into ours" in ended.err
    assert script.asked == []


def test_catalogs_that_are_not_there_are_told(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    for theirs, ours in (("lake", "none"), ("none", "lake")):
        ended = cynosure("migrate", theirs, "--copy", "--into", ours, "--dry-run")
        assert ended.code == 1
        assert "none" in ended.err


def test_a_copy_without_a_server_is_told_and_found_again(
    cynosure: Cynosure, place: Path, tmp_path: Path
) -> None:
    write(tmp_path / "rows.parquet")
    assert cynosure("tables", "append", "orders", str(tmp_path / "rows.parquet"), *WHERE).code == 0
    cynosure("catalogs", "create", "second")
    copying = ("migrate", "lake", "--copy", "--into", "second")

    dry = cynosure(*copying, "--dry-run")
    assert dry.code == 0, dry.err
    assert [row.split()[:3] for row in dry.out.splitlines()[1:]] == [
        ["namespace", "shop", "ready"],
        ["table", "shop.orders", "ready"],
    ]
    assert "2 would be looked after, 0 of them cannot be copied. Nothing was changed." in dry.err

    report = tmp_path / "copied.json"
    done = cynosure(*copying, "--yes", "--report", str(report))
    assert done.code == 0, done.err
    assert done.out == ""
    assert "second has copies now: 2 objects were copied." in done.err
    assert [each["outcome"] for each in json.loads(report.read_text())] == ["copied", "copied"]
    [copy] = (tmp_path / "data" / "warehouse" / "second" / "shop").iterdir()
    assert copy.name.startswith("orders-")
    assert read(copy) == read(place)

    again = cynosure(*copying, "--yes", "--table", "shop.orders")
    assert again.code == 0, again.err
    assert again.out.splitlines()[2].split()[:3] == ["table", "shop.orders", "there"]
    assert "a copy of snapshot" in again.out
    assert "second got all of it before: nothing was left to do." in again.err
