"""`cynosure setup` as its users meet it, without a server."""

import json
import stat
from pathlib import Path

import pytest
import yaml

from tests.cli.running import Cynosure
from tests.storage.access.gcs.google import key_file

TEAM = """
principals:
  alice: {roles: [analysts], properties: {team: eu}}
  bob: {roles: [engineers]}
principal_roles: [analysts, {name: engineers, properties: {a: b}}]
catalogs:
  - {name: theirs, type: external}
  - name: sales
    properties: {owner: me}
    namespaces: [eu.orders, [dotted.name, c], {name: us, properties: {k: v}}]
    roles:
      reader: {assign_to: [analysts], privileges: {namespace: {eu: [TABLE_READ_DATA]}}}
      writer:
        assign_to: [engineers]
        privileges:
          catalog: [CATALOG_MANAGE_CONTENT]
          namespace: [{namespace: [dotted.name, c], privileges: [TABLE_WRITE_DATA]}]
"""
TEAM_STEPS = 20


@pytest.fixture
def team() -> str:
    Path("team.yaml").write_text(TEAM)
    return "team.yaml"


def test_a_dry_run_says_what_a_run_does_and_a_second_run_does_nothing(cynosure: Cynosure, team: str) -> None:
    cynosure("store", "init")
    planned = cynosure("setup", "apply", team, "--dry-run")
    untouched = json.loads(cynosure("catalogs", "list", "--json").out)
    done = cynosure("setup", "apply", team, "--credentials-file", "new.secret")
    again = cynosure("setup", "apply", team, "--credentials-file", "newer.secret")

    lines = [json.loads(line) for line in Path("new.secret").read_text().splitlines()]
    assert (planned.code, done.code, again.code) == (0, 0, 0)
    assert untouched == []
    assert planned.out == done.out
    assert len(done.out.splitlines()) == TEAM_STEPS
    assert [each["principal"] for each in lines] == ["alice", "bob"]
    assert stat.S_IMODE(Path("new.secret").stat().st_mode) == 0o600
    assert again.out == ""
    assert "Nothing to change" in again.err
    assert not Path("newer.secret").exists()


def test_an_export_is_a_setup_that_changes_nothing_here_and_makes_the_same_elsewhere(
    cynosure: Cynosure, team: str
) -> None:
    cynosure("setup", "apply", team, "--credentials-file", "new.secret")

    exported = cynosure("setup", "export")
    Path("export.yaml").write_text(exported.out)
    here = cynosure("setup", "apply", "export.yaml")
    moved = exported.out.replace("/data/warehouse/", "/other/warehouse/")
    Path("moved.yaml").write_text(moved)
    there = cynosure("setup", "apply", "moved.yaml", "--data", "other", "--credentials-file", "other.secret")
    again = cynosure("setup", "export", "--data", "other")

    assert "Nothing to change" in here.err
    assert there.code == 0, there.err
    assert yaml.safe_load(again.out) == yaml.safe_load(moved)
    sales, theirs = yaml.safe_load(exported.out)["catalogs"]
    assert theirs["type"] == "external"
    names = [each["name"] for each in sales["namespaces"]]
    assert names == [["dotted.name"], ["dotted.name", "c"], ["eu"], ["eu", "orders"], ["us"]]


def test_what_fails_is_told_what_needs_it_is_not_tried_and_the_rest_is_done(cynosure: Cynosure) -> None:
    Path("half.yaml").write_text(
        """
principal_roles: [good, "SYSTEM$bad"]
principals: {alice: {roles: [good, "SYSTEM$bad", nobody]}}
catalogs:
  - {name: outside, default_base_location: /elsewhere, namespaces: [a.b], roles: {r: {assign_to: [good]}}}
  - name: inside
    roles: {r: {privileges: {catalog: [NO_SUCH_PRIVILEGE, TABLE_LIST], namespace: {none: [TABLE_LIST]}}}}
"""
    )

    done = cynosure("setup", "apply", "half.yaml", "--json")
    again = cynosure("setup", "apply", "half.yaml")

    report = json.loads(done.out)
    results = {each["text"]: each["result"] for each in report["changes"]}
    failed = [text for text, result in results.items() if result == "failed"]
    assert (done.code, again.code) == (1, 1)
    assert [text.split(":")[0].split(" at ")[0] for text in failed] == [
        "principal role SYSTEM$bad",
        "principal role nobody to principal alice",
        "catalog outside",
        "NO_SUCH_PRIVILEGE on catalog inside to catalog role r of inside",
        "TABLE_LIST on namespace none to catalog role r of inside",
    ]
    assert [text for text, result in results.items() if result == "not tried"] == [
        "principal role SYSTEM$bad to principal alice",
        "namespace a of outside",
        "namespace a.b of outside",
        "catalog role r of outside",
        "catalog role r of outside to principal role good",
    ]
    assert results["principal role good to principal alice"] == "done"
    assert results["TABLE_LIST on catalog inside to catalog role r of inside"] == "done"
    assert report["failed"] == 10
    assert list(report["credentials"]) == ["alice"]
    assert all(each["error"] for each in report["changes"] if each["result"] == "not tried")
    assert again.out == "", "what could be done was done"


@pytest.mark.parametrize("text", ["catalogs: [{name: a, typo: 1}]", "a: ["])
def test_a_file_that_is_not_understood_does_nothing(cynosure: Cynosure, text: str) -> None:
    Path("bad.yaml").write_text(text)

    done = cynosure("setup", "apply", "bad.yaml", "--credentials-file", "x.secret")

    assert done.code == 1
    assert done.err.startswith("Error: ")
    assert not Path("data").exists()
    assert not Path("x.secret").exists()


def test_keys_of_s3_come_from_a_variable_and_are_not_exported(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_SECRET", "hunter2-hunter2-hunter2")
    Path("s3.yaml").write_text(
        """
catalogs:
  - name: lake
    storage_type: s3
    default_base_location: s3://bucket/lake
    endpoint: http://127.0.0.1:9
    path_style_access: true
    access_key_id: AK
    secret_access_key_env: LAKE_SECRET
"""
    )

    done = cynosure("setup", "apply", "s3.yaml")
    again = cynosure("setup", "apply", "s3.yaml")
    exported = cynosure("setup", "export")

    [lake] = yaml.safe_load(exported.out)["catalogs"]
    assert done.code == 0, done.err
    assert "Nothing to change" in again.err
    assert lake["path_style_access"] is True
    assert lake["endpoint"] == "http://127.0.0.1:9"
    assert "hunter2" not in done.out + done.err + exported.out


def test_catalogs_of_other_clouds_are_set_up_with_their_keys_and_exported_without(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POND_SECRET", "hunter2-hunter2-hunter2")
    Path("key.json").write_text(key_file())
    Path("clouds.yaml").write_text(
        """
catalogs:
  - name: lake
    default_base_location: gs://bucket/lake
    gcs_service_account: reader@project.iam.gserviceaccount.com
    service_account_key_file: key.json
  - name: pond
    default_base_location: abfss://pond@acct.dfs.core.windows.net/pond
    tenant_id: tenant-1
    hierarchical: true
    client_id: client-1
    client_secret_env: POND_SECRET
"""
    )

    done = cynosure("setup", "apply", "clouds.yaml")
    again = cynosure("setup", "apply", "clouds.yaml")
    exported = cynosure("setup", "export")
    Path("exported.yaml").write_text(exported.out)
    same = cynosure("setup", "apply", "exported.yaml")

    lake, pond = yaml.safe_load(exported.out)["catalogs"]
    assert done.code == 0, done.err
    assert "Nothing to change" in again.err
    assert "Nothing to change" in same.err
    assert (lake["storage_type"], lake["gcs_service_account"]) == (
        "gcs",
        "reader@project.iam.gserviceaccount.com",
    )
    assert (pond["storage_type"], pond["tenant_id"], pond["hierarchical"]) == ("azure", "tenant-1", True)
    said = done.out + done.err + exported.out
    assert not any(word in said for word in ("hunter2", "PRIVATE KEY", "client-1"))
