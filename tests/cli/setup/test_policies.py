"""Policies and what they are attached to, in setup files."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.running import Cynosure

LAKE = """
principal_roles: [analysts]
catalogs:
  - name: lake
    namespaces: [eu.orders]
    policies:
      compact:
        namespace: eu
        type: system.data-compaction
        description: Keep files large.
        content: {enable: true, config: {target_file_size_bytes: 134217728}}
        attach:
          - {type: catalog}
          - {type: namespace, path: eu.orders, parameters: {k: v}}
      rows:
        namespace: [eu, orders]
        type: cynosure.row-filter
        file: rows.json
        attach: [{type: namespace, path: [eu]}]
    roles:
      reader:
        privileges: {policy: [{namespace: eu, name: compact, privileges: [POLICY_READ]}]}
"""


@pytest.fixture
def lake(cynosure: Cynosure) -> str:
    Path("lake.yaml").write_text(LAKE)
    Path("rows.json").write_text('{"enable": true, "filter": "id > 10", "roles": ["analysts"]}')
    assert cynosure("store", "init").code == 0
    return "lake.yaml"


def test_policies_are_made_attached_and_left_alone_afterwards(cynosure: Cynosure, lake: str) -> None:
    planned = cynosure("setup", "apply", lake, "--dry-run")
    done = cynosure("setup", "apply", lake)
    again = cynosure("setup", "apply", lake)
    counts = cynosure("policies", "applicable", "--catalog", "lake", "--on-namespace", "eu.orders", "--json")

    assert done.code == 0, done.err
    assert planned.out == done.out
    assert "Nothing to change" in again.err
    found = [(each["name"], each["inherited"]) for each in json.loads(counts.out)]
    assert found == [("rows", True), ("compact", False)]


def test_an_export_holds_policies_and_what_they_are_attached_to(cynosure: Cynosure, lake: str) -> None:
    cynosure("setup", "apply", lake)

    exported = cynosure("setup", "export")
    Path("export.yaml").write_text(exported.out)
    here = cynosure("setup", "apply", "export.yaml")
    Path("moved.yaml").write_text(exported.out.replace("/data/warehouse/", "/other/warehouse/"))
    there = cynosure("setup", "apply", "moved.yaml", "--data", "other", "--credentials-file", "other.secret")
    again = cynosure("setup", "export", "--data", "other")

    assert "Nothing to change" in here.err
    assert there.code == 0, there.err
    [catalog] = yaml.safe_load(exported.out)["catalogs"]
    [same] = yaml.safe_load(again.out)["catalogs"]
    assert same["policies"] == catalog["policies"]
    assert {each["name"]: each["attach"] for each in catalog["policies"]} == {
        "compact": [{"type": "catalog"}, {"type": "namespace", "path": ["eu", "orders"]}],
        "rows": [{"type": "namespace", "path": ["eu"]}],
    }


def test_a_file_that_says_something_else_changes_the_policy(cynosure: Cynosure, lake: str) -> None:
    cynosure("setup", "apply", lake)
    Path("lake.yaml").write_text(LAKE.replace("Keep files large.", "Keep files small."))
    Path("rows.json").write_text('{"enable":true,"filter":"id > 20","roles":["analysts"]}')

    done = cynosure("setup", "apply", lake)

    assert done.out.splitlines() == [
        "~ policy eu.compact: description of lake",
        "~ policy eu.orders.rows: content of lake",
    ]


def test_a_file_that_says_another_type_fails_there(cynosure: Cynosure, lake: str) -> None:
    cynosure("setup", "apply", lake)
    Path("lake.yaml").write_text(LAKE.replace("system.data-compaction", "system.snapshot-expiry"))

    planned = cynosure("setup", "apply", lake, "--dry-run")
    done = cynosure("setup", "apply", lake)

    assert (planned.code, done.code) == (1, 1)
    for told in (planned, done):
        assert "its type is system.data-compaction, not system.snapshot-expiry" in told.out + told.err


@pytest.mark.parametrize(
    "policies",
    [
        "[{namespace: a, type: t, content: {}}]",
        "{p: {namespace: a, type: t}}",
        "{p: {namespace: a, type: t, content: {}, file: f}}",
        "{p: {type: t, content: {}}}",
        "{p: {namespace: a, type: t, content: {}, attach: [{type: catalog, path: a}]}}",
        "{p: {namespace: a, type: t, content: {}, attach: [{type: namespace}]}}",
        "{p: {namespace: a, type: t, content: {}, attach: [{type: view, path: a.v}]}}",
        "{p: {namespace: a, type: t, contents: {}}}",
        "{p: {namespace: a, type: t, file: missing.json}}",
    ],
)
def test_what_is_not_understood_is_refused_before_anything_is_done(cynosure: Cynosure, policies: str) -> None:
    Path("bad.yaml").write_text(f"catalogs: [{{name: lake, policies: {policies}}}]")
    cynosure("store", "init")

    ended = cynosure("setup", "apply", "bad.yaml")

    assert ended.code == 1
    assert json.loads(cynosure("catalogs", "list", "--json").out) == []


def test_what_needs_a_policy_that_could_not_be_made_is_not_tried(cynosure: Cynosure, lake: str) -> None:
    Path("lake.yaml").write_text(LAKE.replace("enable: true, config", "enable: maybe, config"))

    done = cynosure("setup", "apply", lake)

    assert done.code == 1
    assert "policy eu.compact of lake: failed" in done.err
    assert done.err.count("not tried") == 2
