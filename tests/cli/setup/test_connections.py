"""Connections in setup files."""

import json
from pathlib import Path

import pytest
import yaml

from cynosure.cli.setup.connections import export_connection
from tests.cli.running import Cynosure

FILE = """
catalogs:
  - name: theirs
    type: external
    default_base_location: s3://bucket/theirs
    connection:
      type: ICEBERG_REST
      uri: https://catalog.example.com/api
      remote_name: {remote}
      client_id: us
      client_secret_env: MY_SECRET
      scopes: [a, b]
      properties: {{header.x-team: lake}}
"""


@pytest.fixture(autouse=True)
def secret(cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    cynosure("store", "init")


def apply(cynosure: Cynosure, text: str, *flags: str) -> str:
    Path("setup.yaml").write_text(text)
    done = cynosure("setup", "apply", "setup.yaml", *flags)
    assert done.code == 0, done.err
    return done.out


def connection(cynosure: Cynosure) -> dict:
    return json.loads(cynosure("catalogs", "get", "theirs", "--json").out)["connectionConfigInfo"]


def test_a_connection_is_made_and_then_left_alone(cynosure: Cynosure) -> None:
    apply(cynosure, FILE.format(remote="sales"))
    version = json.loads(cynosure("catalogs", "get", "theirs", "--json").out)["entityVersion"]
    apply(cynosure, FILE.format(remote="sales"))

    assert connection(cynosure) == {
        "connectionType": "ICEBERG_REST",
        "uri": "https://catalog.example.com/api",
        "remoteCatalogName": "sales",
        "authenticationParameters": {"authenticationType": "OAUTH", "clientId": "us", "scopes": ["a", "b"]},
        "properties": {"header.x-team": "lake"},
    }
    assert json.loads(cynosure("catalogs", "get", "theirs", "--json").out)["entityVersion"] == version


def test_what_differs_is_changed(cynosure: Cynosure) -> None:
    apply(cynosure, FILE.format(remote="sales"))

    told = apply(cynosure, FILE.format(remote="other").replace("catalog.example", "moved.example"))

    assert "connection" in told
    assert connection(cynosure)["remoteCatalogName"] == "other"
    assert connection(cynosure)["uri"] == "https://moved.example.com/api"


def test_a_catalog_without_one_is_not_given_it(cynosure: Cynosure) -> None:
    apply(cynosure, FILE.partition("    connection:")[0])

    Path("setup.yaml").write_text(FILE.format(remote="sales"))
    done = cynosure("setup", "apply", "setup.yaml")

    assert "without a connection" in done.out + done.err
    assert "connectionConfigInfo" not in json.loads(cynosure("catalogs", "get", "theirs", "--json").out)


def test_every_field_of_a_file_is_a_flag(cynosure: Cynosure) -> None:
    text = """
catalogs:
  - name: theirs
    type: external
    default_base_location: s3://bucket/theirs
    connection:
      {type: GLUE, region: eu-west-1, access_key_id: AKIA, secret_access_key_env: MY_SECRET,
       role_arn: "arn:aws:iam::1:role/x", role_session_name: lake, external_id: "1:2",
       session_policy: "{}", sts_endpoint: "https://sts.example.com", signing_name: glue, remote_name: "123",
       auth: sigv4}
"""
    apply(cynosure, text)

    exported = export_connection(connection(cynosure))

    wanted = yaml.safe_load(text)["catalogs"][0]["connection"]
    secrets = ("access_key_id", "secret_access_key_env")
    assert exported == {
        **{name: value for name, value in wanted.items() if name not in secrets},
        "auth": "SIGV4",
        "uri": "https://glue.eu-west-1.amazonaws.com",
    }
