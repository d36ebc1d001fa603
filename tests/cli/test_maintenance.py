"""`cynosure maintenance …` with the store of a directory."""

import json
from pathlib import Path

import msgspec
import pytest

from cynosure.testing.metadata_files import write_metadata
from tests.cli.running import Cynosure

PLACE = ("--catalog", "lake", "--namespace", "sales")
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "day", "required": False, "type": "string"}],
}
CONTENT = '{"enable":true,"config":{"schedule":"PT6H","window":"22:00-06:00","color":"red"}}'
ORDER = ("maintenance", "run", "lake", "--namespace", "sales", "--table", "orders", "--operation")


@pytest.fixture
def furnished(cynosure: Cynosure, tmp_path: Path) -> Cynosure:
    """With a table `sales.orders` and a policy that counts for it."""
    assert cynosure("catalogs", "create", "lake").code == 0
    folder = tmp_path / "data" / "warehouse" / "lake" / "orders"
    file = write_metadata(folder, "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c11", SCHEMA)
    tables = tmp_path / "tables.jsonl"
    tables.write_bytes(
        msgspec.json.encode({"namespace": ["sales"], "name": "orders", "metadata-location": file})
    )
    assert cynosure("tables", "import", "lake", str(tables)).code == 0
    made = cynosure(
        "policies", "create", "p", "--type", "system.data-compaction", "--content", CONTENT, *PLACE
    )
    assert made.code == 0, made.err
    assert cynosure("policies", "attach", "p", "--on-catalog", *PLACE).code == 0
    return cynosure


def test_the_plan_explains_itself(furnished: Cynosure) -> None:
    ended = furnished("maintenance", "plan", "lake")
    as_json = furnished("maintenance", "plan", "lake", "--namespace", "sales", "--table", "orders", "--json")

    assert ended.code == 0, ended.err
    words = " ".join(ended.out.split())
    for word in ("DATA_COMPACTION", "no-service"):
        assert word in words
    (entry,) = json.loads(as_json.out)["plan"]
    assert (entry["table"], entry["decision"]) == ("orders", "no-service")
    assert entry["why"] == "it needs a delegation service: set delegation.endpoint"
    assert entry["notes"] == ["config.color is not known here and is left to engines"]
    assert (entry["schedule"], entry["window"]) == ("PT6H", "22:00-06:00")


def test_where_no_policy_counts(furnished: Cynosure) -> None:
    assert furnished("policies", "detach", "p", "--on-catalog", *PLACE).code == 0

    ended = furnished("maintenance", "plan", "lake")

    assert ended.code == 0
    assert "No policy of maintenance counts" in ended.err


def test_nothing_was_run_yet(furnished: Cynosure) -> None:
    ended = furnished("maintenance", "runs", "lake")

    assert ended.code == 0, ended.err
    assert "Nothing was run yet" in ended.err
    assert json.loads(furnished("maintenance", "runs", "lake", "--json").out) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*ORDER, "DATA_COMPACTION"), "delegation"),
        ((*ORDER, "VACUUM"), "DATA_COMPACTION"),
        ((*ORDER, "TABLE_PURGE"), "purgeRequested"),
        ((*ORDER, "DATA_COMPACTION", "--property", "x"), "KEY=VALUE"),
        (("maintenance", "plan", "lake", "--table", "orders"), "--namespace"),
        (("maintenance", "plan", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_done_says_why(furnished: Cynosure, arguments: tuple[str, ...], named: str) -> None:
    ended = furnished(*arguments)

    assert ended.code == 1
    assert named in ended.err
    assert "Traceback" not in ended.err
