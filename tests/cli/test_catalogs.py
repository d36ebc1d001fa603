"""`cynosure catalogs` as its users meet it, without a server."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import Cynosure

S3 = ("--s3-endpoint", "http://127.0.0.1:9000", "--s3-path-style", "--s3-access-key-id", "AK")


def test_create_list_show_update_and_drop(cynosure: Cynosure, tmp_path: Path) -> None:
    created = cynosure("catalogs", "create", "lake", "--property", "owner=me", "--property", "team=a=b")
    listed = cynosure("catalogs", "list")
    cynosure("catalogs", "update", "lake", "--property", "owner=you", "--remove-property", "team")
    shown = json.loads(cynosure("catalogs", "show", "lake", "--json").out)
    dropped = cynosure("catalogs", "drop", "lake")
    empty = cynosure("catalogs", "list")

    location = f"file://{tmp_path}/data/warehouse/lake"
    assert (created.code, created.err) == (0, "")
    assert location in created.out
    assert listed.out.splitlines()[1].split()[:3] == ["lake", "FILE", location]
    assert shown["properties"] == {"owner": "you", "default-base-location": location}
    assert shown["entityVersion"] == 2
    assert dropped.code == 0
    assert (empty.code, len(empty.out.splitlines())) == (0, 1)
    assert "cynosure catalogs create" in empty.err


def test_paths_are_those_of_the_caller(cynosure: Cynosure, tmp_path: Path) -> None:
    Path("cynosure.toml").write_text(f"storage.file_roots.mine = '{tmp_path}/mine'\n")

    made = cynosure("catalogs", "create", "lake", "--location", "mine/lake", "--allowed-location", "mine/b")
    outside = cynosure("catalogs", "create", "other", "--location", "elsewhere")
    shown = json.loads(cynosure("catalogs", "show", "lake", "--json").out)

    assert made.code == 0, made.err
    allowed = shown["storageConfigInfo"]["allowedLocations"]
    assert sorted(allowed) == [f"file://{tmp_path}/mine/b", f"file://{tmp_path}/mine/lake"]
    assert outside.code == 1
    assert f"file://{tmp_path}/mine" in outside.err


@pytest.mark.parametrize("way", ["file", "variable", "standard input"])
def test_a_secret_comes_from_a_file_a_variable_or_standard_input(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    Path("secret").write_text("hunter2\n")
    monkeypatch.setenv("MY_SECRET", "hunter2")
    monkeypatch.setattr(sys, "stdin", io.StringIO("hunter2\n"))
    flags = {
        "file": ("--s3-secret-access-key-file", "secret"),
        "variable": ("--s3-secret-access-key-env", "MY_SECRET"),
        "standard input": ("--s3-secret-access-key-file", "-"),
    }[way]

    made = cynosure("catalogs", "create", "lake", "--location", "s3://b/p", *S3, *flags)
    shown = cynosure("catalogs", "show", "lake")
    as_json = cynosure("catalogs", "show", "lake", "--json")

    assert made.code == 0, made.err
    assert "http://127.0.0.1:9000" in shown.out
    assert "hunter2" not in made.out + made.err + shown.out + shown.err + as_json.out
    assert b"hunter2" not in Path("data/store.db").read_bytes()


@pytest.mark.parametrize(
    ("flags", "words", "fix"),
    [
        (("--location", "s3://b/p", *S3), "needs its id and its secret", "Give --s3-access-key-id"),
        (("--location", "s3://b/p", *S3, "--s3-secret-access-key-env", "NOT_SET"), "is not set", "Set it"),
        (("--location", "s3://b/p", *S3, "--s3-secret-access-key-file", "none"), "cannot be read", "Check"),
        (("--s3-region", "eu-west-1"), "need no S3 options", "s3://"),
        (("--property", "novalue"), "key and a value", "KEY=VALUE"),
        (("--location", "ftp://x/y"), "no scheme", "Begin it with s3"),
    ],
)
def test_what_cannot_be_is_refused_in_one_block_and_leaves_nothing(
    cynosure: Cynosure, flags: tuple[str, ...], words: str, fix: str
) -> None:
    refused = cynosure("catalogs", "create", "lake", *flags)

    assert refused.code == 1
    assert words in refused.err
    assert "Traceback" not in refused.err
    assert refused.err.startswith("Error: ")
    assert fix in refused.err.rpartition("\nFix: ")[2]
    assert "lake" not in cynosure("catalogs", "list").out


def test_what_is_only_looked_at_is_not_added_to(cynosure: Cynosure) -> None:
    """I2."""
    nothing = cynosure("catalogs", "list")
    before = Path("data").exists()
    cynosure("catalogs", "create", "lake")
    made = sorted(path.name for path in Path("data").iterdir())
    cynosure("catalogs", "list")

    assert (nothing.code, before) == (1, False)
    assert "cynosure store init" in nothing.err
    assert sorted(path.name for path in Path("data").iterdir()) == made


def test_a_half_dropped_catalog_is_opened_again(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    done = cynosure("catalogs", "reopen", "lake", "--json")

    assert done.code == 0
    assert json.loads(done.out) == {"name": "lake", "version": 1}
