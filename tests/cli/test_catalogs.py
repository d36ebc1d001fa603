"""`cynosure catalogs` as its users meet it, without a server."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import Cynosure
from tests.storage.access.gcs.google import key_file

LAKE = "abfss://lake@acct.dfs.core.windows.net/p"
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


def test_a_catalog_in_google_cloud_storage(cynosure: Cynosure) -> None:
    Path("key.json").write_text(key_file())
    account = "reader@project.iam.gserviceaccount.com"
    flags = ("--gcs-key-file", "key.json", "--gcs-service-account", account)

    made = cynosure("catalogs", "create", "lake", "--location", "gs://bucket/lake", *flags)
    changed = cynosure("catalogs", "update", "lake", "--storage-name", "archive")
    shown = cynosure("catalogs", "get", "lake", "--json")

    assert made.code == changed.code == 0, made.err + changed.err
    assert json.loads(shown.out)["storageConfigInfo"] == {
        "storageType": "GCS",
        "allowedLocations": ["gs://bucket/lake"],
        "gcsServiceAccount": account,
        "storageName": "archive",
    }
    assert "PRIVATE KEY" not in made.out + made.err + shown.out + changed.out
    assert b"PRIVATE KEY" not in Path("data/store.db").read_bytes()


def test_a_key_of_many_lines_comes_from_standard_input(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = json.dumps(json.loads(key_file()), indent=2)
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))

    made = cynosure("catalogs", "create", "lake", "--location", "gs://bucket/lake", "--gcs-key-file", "-")

    assert made.code == 0, made.err


def test_a_catalog_in_azure(cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    key = ("--azure-client-id", "client-1", "--azure-client-secret-env", "MY_SECRET")
    flags = ("--azure-tenant-id", "tenant-1", "--azure-hierarchical", *key)

    made = cynosure("catalogs", "create", "lake", "--location", LAKE, *flags)
    moved = ("--azure-authority-host", "https://login.example.com")
    refused = cynosure("catalogs", "update", "lake", *moved)
    changed = cynosure("catalogs", "update", "lake", *moved, *key)
    shown = cynosure("catalogs", "get", "lake", "--json")

    assert made.code == changed.code == 0, made.err + changed.err
    assert refused.code == 1
    assert "clientId" in refused.err
    assert json.loads(shown.out)["storageConfigInfo"] == {
        "storageType": "AZURE",
        "allowedLocations": [LAKE],
        "tenantId": "tenant-1",
        "hierarchical": True,
        "authorityHost": "https://login.example.com",
    }
    said = made.out + made.err + changed.out + shown.out + refused.err
    assert not any(word in said for word in ("hunter2", "client-1"))
    assert b"hunter2" not in Path("data/store.db").read_bytes()


@pytest.mark.parametrize(
    ("flags", "words", "fix"),
    [
        (("--location", "s3://b/p", *S3), "needs its id and its secret", "Give --s3-access-key-id"),
        (("--location", "s3://b/p", *S3, "--s3-secret-access-key-env", "NOT_SET"), "is not set", "Set it"),
        (("--location", "s3://b/p", *S3, "--s3-secret-access-key-file", "none"), "cannot be read", "Check"),
        (("--s3-region", "eu-west-1"), "take no S3 options", "s3://"),
        (("--location", "s3://b/p", "--gcs-key-env", "X"), "takes no GCS options", "gs://"),
        (("--location", "gs://b/p", "--azure-flat"), "takes no AZURE options", "abfss://"),
        (("--location", LAKE), "needs its tenant", "--azure-tenant-id"),
        (
            ("--location", LAKE, "--azure-tenant-id", "t-1", "--azure-client-id", "x"),
            "its secret",
            "--azure-client-secret",
        ),
        (("--location", "gs://b/p", "--gcs-key-env", "HOME"), "not the key of a service account", "JSON"),
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


@pytest.mark.parametrize(
    ("location", "flags", "named"),
    [
        ("s3://b/p", ("--s3-endpoint", "nowhere"), "--s3-endpoint"),
        ("s3://b/p", ("--s3-role-arn", "me"), "--s3-role-arn"),
        ("s3://b/p", ("--allowed-location", "s3://b/../q"), "--allowed-location"),
        ("s3://b/../p", (), "--location"),
        ("gs://b/p", ("--gcs-endpoint", "nowhere"), "--gcs-endpoint"),
        ("gs://b/p", ("--gcs-key-env", "HOME"), "--gcs-key-file"),
        (LAKE, ("--azure-tenant-id", "t 1"), "--azure-tenant-id"),
    ],
)
def test_what_the_server_refuses_of_a_storage_is_told_by_its_flag(
    cynosure: Cynosure, location: str, flags: tuple[str, ...], named: str
) -> None:
    refused = cynosure("catalogs", "create", "lake", "--location", location, *flags)

    assert refused.code == 1
    assert f"\n  field: {named}\n" in refused.err
    assert "\nFix: " in refused.err


def test_half_a_key_is_refused_by_its_flag_when_a_catalog_is_changed(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake", "--location", "s3://b/p")

    refused = cynosure("catalogs", "update", "lake", "--s3-access-key-id", "AK")

    assert refused.code == 1
    assert "\n  field: --s3-access-key-id\n" in refused.err


@pytest.mark.parametrize(
    ("flag", "wrong", "right"), [("--type", "foreign", "external"), ("--storage-type", "HDFS", "azure")]
)
def test_a_word_that_is_none_of_a_flags_is_wrong_usage(
    cynosure: Cynosure, flag: str, wrong: str, right: str
) -> None:
    refused = cynosure("catalogs", "create", "lake", flag, wrong)

    assert refused.code == 2
    assert flag in refused.err
    assert right in refused.err.lower()


def test_allowed_locations_are_added_and_taken_away(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake", "--location", "s3://b/p", "--allowed-location", "s3://b/q")

    changed = cynosure(
        "catalogs",
        "update",
        "lake",
        "--allowed-location",
        "s3://b/r",
        "--remove-allowed-location",
        "s3://b/q",
        "--json",
    )
    refused = cynosure("catalogs", "update", "lake", "--remove-allowed-location", "s3://b/q")

    assert changed.code == 0, changed.err
    assert json.loads(changed.out)["storageConfigInfo"]["allowedLocations"] == ["s3://b/p", "s3://b/r"]
    assert refused.code == 1
    assert "\n  field: --remove-allowed-location\n" in refused.err
    assert "s3://b/p, s3://b/r" in refused.err.rpartition("\nFix: ")[2]


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
