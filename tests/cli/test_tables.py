from pathlib import Path

import msgspec

from tests.cli.running import Cynosure


def test_a_list_of_tables_is_imported_once(cynosure: Cynosure, tmp_path: Path) -> None:
    assert cynosure("catalogs", "create", "lake").code == 0
    base = (tmp_path / "data" / "warehouse" / "lake").as_uri()
    tables = tmp_path / "tables.jsonl"
    lines = [
        {"namespace": ["ns"], "name": name, "metadata-location": f"{base}/{name}/metadata/1.json"}
        for name in ("one", "two")
    ]
    tables.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))

    first = cynosure("tables", "import", "lake", str(tables), "--json")
    second = cynosure("tables", "import", "lake", str(tables))

    assert msgspec.json.decode(first.out) == {"tables": 2, "namespaces": 1}
    assert second.code == 1
    assert "empty" in second.err


def test_what_was_dropped_in_another_realm_is_found_and_restored_there(cynosure: Cynosure) -> None:
    assert cynosure("realms", "create", "acme", "--json").code == 0
    assert cynosure("catalogs", "create", "lake", "--realm", "acme").code == 0
    assert cynosure("namespaces", "create", "sales", "--catalog", "lake", "--realm", "acme").code == 0
    assert cynosure("namespaces", "delete", "sales", "--catalog", "lake", "--realm", "acme").code == 0

    dropped = cynosure("tables", "dropped", "lake", "--realm", "acme", "--json")
    restored = cynosure("tables", "restore", "lake", "sales", "--realm", "acme")
    elsewhere = cynosure("tables", "dropped", "lake")

    assert [each["path"] for each in msgspec.json.decode(dropped.out)] == [["sales"]]
    assert restored.code == 0, restored.err
    assert elsewhere.code == 1
