import subprocess
import sys
from pathlib import Path

import msgspec


def cynosure(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from cynosure.cli.main import run; run()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_list_of_tables_is_imported_once(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert cynosure("catalogs", "create", "lake", "--data", data).returncode == 0
    base = (tmp_path / "data" / "warehouse" / "lake").as_uri()
    tables = tmp_path / "tables.jsonl"
    lines = [
        {"namespace": ["ns"], "name": name, "metadata-location": f"{base}/{name}/metadata/1.json"}
        for name in ("one", "two")
    ]
    tables.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))

    first = cynosure("tables", "import", "lake", str(tables), "--data", data, "--json")
    second = cynosure("tables", "import", "lake", str(tables), "--data", data)

    assert msgspec.json.decode(first.stdout) == {"tables": 2, "namespaces": 1}
    assert second.returncode == 1
    assert "empty" in second.stderr
