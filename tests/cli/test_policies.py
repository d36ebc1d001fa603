"""`cynosure policies …`: the whole life of a policy from the command line."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.running import Cynosure

PLACE = ("--catalog", "lake", "--namespace", "eu.orders")
COMPACTION = ("--type", "system.data-compaction")


@pytest.fixture
def furnished(cynosure: Cynosure) -> Cynosure:
    assert cynosure("catalogs", "create", "lake").code == 0
    for namespace in ("eu", "eu.orders"):
        assert cynosure("namespaces", "create", namespace, "--catalog", "lake").code == 0
    return cynosure


def told(cynosure: Cynosure, *arguments: str) -> Any:
    ended = cynosure("policies", *arguments, "--json")
    assert ended.code == 0, ended.err
    return msgspec.json.decode(ended.out)


def test_a_policy_is_created_changed_attached_and_dropped(furnished: Cynosure, tmp_path: Path) -> None:
    file = tmp_path / "compact.json"
    file.write_text('{"enable":true}')

    made = told(furnished, "create", "compact", *COMPACTION, "--file", str(file), *PLACE)
    changed = told(furnished, "update", "compact", "--content", '{"enable":false}', *PLACE)
    listed = told(furnished, "list", *PLACE, *COMPACTION)
    told(furnished, "attach", "compact", *PLACE, "--on-namespace", "eu", "--parameter", "a=b")
    below = told(furnished, "applicable", "--catalog", "lake", "--on-namespace", "eu.orders")
    above = told(furnished, "applicable", "--catalog", "lake", "--on-catalog")
    refused = furnished("policies", "delete", "compact", *PLACE)
    told(furnished, "detach", "compact", *PLACE, "--on-namespace", "eu")
    told(furnished, "delete", "compact", *PLACE)

    assert (made["version"], changed["version"], changed["content"]) == (0, 1, '{"enable":false}')
    assert listed == [{"namespace": ["eu", "orders"], "name": "compact"}]
    assert [(each["name"], each["inherited"]) for each in below] == [("compact", True)]
    assert above == []
    assert refused.code == 1
    assert "detach" in refused.err
    assert told(furnished, "list", *PLACE) == []


def test_people_read_tables_and_fields(furnished: Cynosure) -> None:
    told(furnished, "create", "compact", *COMPACTION, "--content", '{"enable":true}', *PLACE)
    told(furnished, "attach", "compact", *PLACE, "--on-catalog")

    shown = furnished("policies", "get", "compact", *PLACE)
    found = furnished("policies", "applicable", "--catalog", "lake", "--on-namespace", "eu")
    listed = furnished("policies", "list", *PLACE)

    assert '{"enable":true}' in shown.out
    assert "eu.orders.compact" in found.out
    assert "compact" in listed.out


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("create", "p", *COMPACTION, *PLACE), "--file"),
        (("create", "p", *COMPACTION, *PLACE, "--file", "no/such/file"), "--file"),
        (("create", "p", *COMPACTION, *PLACE, "--file", "-", "--content", "{}"), "--file"),
        (("create", "p", *COMPACTION, *PLACE, "--content", "{}"), "content.enable"),
        (("update", "p", *PLACE, "--current-version", "1"), "--content"),
        (("list", *PLACE, "--type", "system.compaction"), "policyType"),
        (("attach", "p", *PLACE, "--on-catalog", "--parameter", "novalue"), "--parameter"),
        (("attach", "p", *PLACE), "--on-table"),
        (("attach", "p", *PLACE, "--on-catalog", "--on-namespace", "eu"), "--on-table"),
        (("attach", "p", *PLACE, "--on-table", "orders"), "--on-table"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    furnished: Cynosure, arguments: tuple[str, ...], field: str
) -> None:
    ended = furnished("policies", *arguments)

    assert ended.code == 1
    assert field in ended.err


def test_the_history_of_a_catalog_tells_what_was_attached(furnished: Cynosure) -> None:
    told(furnished, "create", "compact", *COMPACTION, "--content", '{"enable":true}', *PLACE)
    references = json.loads(furnished("store", "status", "--json").out)["references"]
    [target] = [each["target"] for each in references if each["target"].endswith("/main")]
    before = json.loads(furnished("store", "log", target, "--json").out)[0]["id"]
    told(furnished, "attach", "compact", *PLACE, "--on-catalog")

    log = furnished("store", "log", target)
    diff = furnished("store", "diff", target, str(before))

    assert "attach-policy-to-catalog" in log.out
    lines = sorted(diff.out.splitlines())
    assert [line.split("  ")[0] for line in lines] == ["+ mappings", "+ mappings"]
    assert re.search(r"p/[0-9]+/0 .*policy-mapping", lines[0])
    assert re.search(r"t/0/[0-9]+ .*policy-mapping", lines[1])
