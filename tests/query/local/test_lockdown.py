"""DuckDB reaches nothing but what is registered: raw text on the engine's own connection is refused."""

import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from cynosure.query.local.database import Database
from cynosure.query.settings import QuerySettings

some_python_variable = pa.table({"secret": [1]})

REFUSED = (
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{folder}/export'",
    "ATTACH '{folder}/other.db' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/own.duckdb_extension'",
    "SELECT * FROM read_csv('https://example.com/a.csv')",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET python_enable_replacements = true",
    "SET threads = 64",
    "SET temp_directory = '{folder}'",
    "RESET memory_limit",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA temp_directory = '{folder}'",
    "SET disabled_optimizers = ''",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "SELECT getenv('HOME')",
    "SELECT * FROM some_python_variable",
    "SELECT * FROM of_another",
)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(QuerySettings(), tmp_path / "spill")


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str, database: Database, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    local_variable = pa.table({"secret": [1]})
    other, connection = database.connect(()), database.connect(())
    other.register("of_another", local_variable)
    try:
        with pytest.raises(duckdb.Error):
            connection.execute(text.format(file=file, folder=tmp_path)).fetchall()
        with pytest.raises(duckdb.Error):
            connection.sql(text.format(file=file, folder=tmp_path)).fetchall()
        assert not (tmp_path / "out.csv").exists()
    finally:
        connection.close()
        other.close()
        database.close()


def test_control_without_lock(tmp_path: Path) -> None:
    """What is refused above works on a connection that is not locked."""
    file = tmp_path / "data.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    with duckdb.connect(":memory:") as connection:
        assert connection.execute(f"SELECT a FROM read_csv('{file}')").fetchall() == [(1,)]
        assert connection.execute("SELECT secret FROM some_python_variable").fetchall() == [(1,)]
        connection.execute("SET threads = 1")


def test_settings_are_as_meant(database: Database) -> None:
    connection = database.connect(())
    found = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    connection.close()
    database.close()
    wanted = {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "python_scan_all_frames": "false",
        "memory_limit": "2.0 GiB",
    }
    assert {name: found.get(name) for name in wanted} == wanted


def test_spill_directory(tmp_path: Path) -> None:
    """Its own, for nobody else; those of processes that are gone are removed, others are not."""
    parent = tmp_path / "spill"
    gone, kept = parent / "local-999999999-abc", parent / "mine"
    gone.mkdir(parents=True)
    kept.mkdir()
    database = Database(QuerySettings(), parent)
    [own] = [each for each in parent.iterdir() if each != kept]
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not gone.exists()
    database.close()
    assert list(parent.iterdir()) == [kept]


def test_without_spilling_there_is_no_directory(tmp_path: Path) -> None:
    database = Database(QuerySettings(spill_to_disk=False), tmp_path / "spill")
    connection = database.connect(())
    assert connection.execute(
        "SELECT value FROM duckdb_settings() WHERE name = 'temp_directory'"
    ).fetchall() == [("",)]
    connection.close()
    database.close()
    assert not (tmp_path / "spill").exists()
