"""`cynosure catalogs` with connections to other catalogs, as its users meet it, without a server."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import Cynosure

EXTERNAL = ("--type", "external", "--location", "s3://bucket/theirs")
REST = ("--connection-type", "iceberg_rest", "--connection-uri", "https://catalog.example.com/api")
CLIENT = ("--remote-name", "sales", "--remote-client-id", "us")
SHOWN = {
    "connectionType": "ICEBERG_REST",
    "uri": "https://catalog.example.com/api",
    "remoteCatalogName": "sales",
    "authenticationParameters": {"authenticationType": "OAUTH", "clientId": "us"},
}


def connection(cynosure: Cynosure) -> dict:
    return json.loads(cynosure("catalogs", "get", "theirs", "--json").out)["connectionConfigInfo"]


@pytest.mark.parametrize("way", ["file", "variable", "standard input"])
def test_a_secret_comes_from_a_file_a_variable_or_standard_input(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    Path("secret").write_text("hunter2\n")
    monkeypatch.setenv("MY_SECRET", "hunter2")
    monkeypatch.setattr(sys, "stdin", io.StringIO("hunter2\n"))
    flags = {
        "file": ("--remote-client-secret-file", "secret"),
        "variable": ("--remote-client-secret-env", "MY_SECRET"),
        "standard input": ("--remote-client-secret-file", "-"),
    }[way]

    made = cynosure("catalogs", "create", "theirs", *EXTERNAL, *REST, *CLIENT, *flags)
    shown = cynosure("catalogs", "get", "theirs")

    assert made.code == 0, made.err
    assert connection(cynosure) == SHOWN
    for word in ("ICEBERG_REST", "https://catalog.example.com/api", "sales", "OAUTH"):
        assert word in shown.out
    assert "hunter2" not in made.out + made.err + shown.out + shown.err
    assert b"hunter2" not in Path("data/store.db").read_bytes()


def test_what_is_not_named_stays(cynosure: Cynosure) -> None:
    Path("secret").write_text("hunter2\n")
    secret = ("--remote-client-secret-file", "secret")
    cynosure("catalogs", "create", "theirs", *EXTERNAL, *REST, *CLIENT, *secret)

    renamed = cynosure("catalogs", "update", "theirs", "--remote-name", "other")
    rotated = cynosure("catalogs", "update", "theirs", *secret)
    property_ = cynosure(
        "catalogs", "update", "theirs", "--set-property", "cynosure.federation.grants=by-name"
    )
    moved = cynosure("catalogs", "update", "theirs", "--connection-uri", "https://other.example.com")
    with_secret = cynosure(
        "catalogs", "update", "theirs", "--connection-uri", "https://other.example.com", *secret
    )

    assert [each.code for each in (renamed, rotated, property_, with_secret)] == [0] * 4
    assert moved.code == 1
    assert "Give the secrets together" in moved.err
    assert connection(cynosure) == {
        **SHOWN,
        "remoteCatalogName": "other",
        "uri": "https://other.example.com",
    }


@pytest.mark.parametrize(
    ("flags", "proof"),
    [
        (
            ("--connection-type", "GLUE", "--remote-region", "eu-west-1", "--remote-access-key-id", "AKIA",
             "--remote-secret-key-file", "secret", "--remote-role-arn", "arn:aws:iam::1:role/x",
             "--remote-session-policy", "{}"),
            {"authenticationType": "SIGV4", "signingRegion": "eu-west-1", "signingName": "glue",
             "roleArn": "arn:aws:iam::1:role/x", "sessionPolicy": "{}"},
        ),
        (
            ("--connection-type", "SQL", "--connection-uri", "postgresql://db/lake", "--remote-name", "sales",
             "--remote-user", "us", "--remote-password-file", "secret"),
            {"authenticationType": "PASSWORD", "user": "us"},
        ),
        (
            (*REST, "--remote-auth", "bearer", "--remote-token-file", "secret",
             "--connection-property", "header.x-team=lake"),
            {"authenticationType": "BEARER"},
        ),
    ],
)  # fmt: skip
def test_each_kind_has_its_usual_authentication(
    cynosure: Cynosure, flags: tuple[str, ...], proof: dict
) -> None:
    Path("secret").write_text("hunter2\n")

    made = cynosure("catalogs", "create", "theirs", *EXTERNAL, *flags)

    assert made.code == 0, made.err
    assert connection(cynosure)["authenticationParameters"] == proof
    assert "AKIA" not in cynosure("catalogs", "get", "theirs", "--json").out


def test_a_hive_metastore_needs_an_operator(cynosure: Cynosure) -> None:
    hive = ("--connection-type", "HIVE", "--connection-uri", "thrift://localhost:9083")

    refused = cynosure("catalogs", "create", "theirs", *EXTERNAL, *hive)
    Path("cynosure.toml").write_text("[federation]\nallow_implicit = true\n")
    made = cynosure("catalogs", "create", "theirs", *EXTERNAL, *hive)

    assert refused.code == 1
    assert "--remote-auth" in refused.err
    assert "federation.allow_implicit" in refused.err
    assert made.code == 0, made.err
    assert connection(cynosure)["connectionType"] == "HIVE"


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (("--connection-uri", "https://catalog.example.com"), "--connection-type"),
        (("--connection-type", "HADOOP", "--connection-uri", "x"), "--connection-type"),
        ((*REST, *CLIENT), "--remote-client-secret-file"),
        ((*REST[:3], "http://catalog.example.com", *CLIENT), "--connection-uri"),
        ((*REST, "--remote-client-id", "us", "--remote-token-uri", "ftp://x"), "--remote-token-uri"),
        ((*REST, *CLIENT, "--connection-property", "token=x"), "--connection-property"),
    ],
)
def test_what_is_refused_is_told_by_its_flag(cynosure: Cynosure, flags: tuple[str, ...], field: str) -> None:
    refused = cynosure("catalogs", "create", "theirs", *EXTERNAL, *flags)

    assert refused.code == 1
    assert refused.err.startswith("Error: ")
    assert field in refused.err
    assert "\nFix: " in refused.err
    assert "theirs" not in cynosure("catalogs", "list").out


def test_a_catalog_without_a_connection_gets_none(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "ours")

    refused = cynosure("catalogs", "update", "ours", "--remote-name", "sales")

    assert refused.code == 1
    assert "has no connection" in refused.err


def test_keys_of_catalogs_are_rewrapped(cynosure: Cynosure) -> None:
    Path("secret").write_text("hunter2\n")
    cynosure(
        "catalogs", "create", "theirs", *EXTERNAL, *REST, *CLIENT, "--remote-client-secret-file", "secret"
    )

    nothing = cynosure("catalogs", "rewrap", "--dry-run")
    as_json = cynosure("catalogs", "rewrap", "--json")

    assert nothing.code == 0, nothing.err
    assert "0 of 1 catalogs" in nothing.out
    assert json.loads(as_json.out) == {"catalogs": [], "looked_at": 1}
