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
