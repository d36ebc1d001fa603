"""`cynosure tables append`: files of this machine into a table, without a server."""

import asyncio
import json
import sys
from functools import cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import Raw

from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.common.key_file import open_keyring
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.server.settings import load_settings
from cynosure.server.wiring import open_serving
from cynosure.testing.small_catalog import ROOT
from tests.cli.running import Cynosure

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "int", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
        {"id": 3, "name": "day", "type": "date", "required": False},
        {"id": 4, "name": "price", "type": "decimal(9, 2)", "required": False},
    ],
}
WHERE = ("--catalog", "lake", "--namespace", "shop")
ROWS = [(1, "NA", "2026-01-02", "1.50"), (2, None, None, None)]


@pytest.fixture
def place(cynosure: Cynosure) -> Path:
    """The table `shop.orders`."""
    assert cynosure("catalogs", "create", "lake").code == 0

    async def create() -> Path:
        settings = load_settings(environment={})
        keyring = cache(lambda: open_keyring(settings.keyring, settings.server.data_dir))
        async with (
            open_persistence(settings.store_url.reveal()) as persistence,
            open_serving(settings, persistence, keyring, sys.stderr) as serving,
        ):
            catalog = await serving.directory.open(DEFAULT_REALM, "lake")
            await create_namespace(catalog, ROOT, ("shop",), {})
            schema = Raw(msgspec.json.encode(SCHEMA))
            wanted = CreateTable(namespace=("shop",), name="orders", schema=schema)
            answer = (await create_table(catalog, ROOT, wanted)).answer
            assert answer.metadata_location is not None
            return Path(answer.metadata_location.removeprefix("file://")).parents[1]

    return asyncio.run(create())


def read(place: Path) -> list[tuple[str | None, ...]]:
    found = [row for path in sorted(place.rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return [tuple(None if value is None else str(value) for value in row.values()) for row in found]


def write(path: Path) -> None:
    if path.suffix in (".parquet", ".arrow"):
        table = pa.table(
            {
                "price": pa.array([each[3] for each in ROWS]).cast(pa.decimal128(9, 2)),
                "id": pa.array([each[0] for each in ROWS], pa.int8()),
                "name": [each[1] for each in ROWS],
                "day": pa.array([each[2] for each in ROWS]).cast(pa.date32()),
            }
        )
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
    elif path.suffix == ".csv":
        path.write_text("name,id,day,price\nNA,1,2026-01-02,1.50\n,2,,\n")
    else:
        path.write_text('{"id": 1, "name": "NA", "day": "2026-01-02", "price": "1.50"}\n{"id": 2}\n')


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".jsonl"])
def test_a_file_is_appended(cynosure: Cynosure, place: Path, tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"day{suffix}")

    done = cynosure("tables", "append", "orders", f"day{suffix}", *WHERE, "--property", "batch=7", "--json")

    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert (answer["added-records"], answer["added-files"]) == (2, 1)
    assert read(place) == [(str(id_), name, day, price) for id_, name, day, price in ROWS]
    [snapshot] = json.loads(cynosure("tables", "get", "orders", *WHERE, "--json").out)["metadata"][
        "snapshots"
    ]
    assert (snapshot["snapshot-id"], snapshot["summary"]["batch"]) == (answer["snapshot-id"], "7")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("day.csv", "id,color\n1,red\n", "color"),
        ("day.csv", "id\nx\n", "cannot be read"),
        ("day.csv", "", "cannot be read"),
        ("day.parquet", "PAR1", "cannot be read"),
        ("day.jsonl", "{", "cannot be read"),
        ("day.txt", "1", ".parquet"),
        ("other.csv", None, "no such file"),
    ],
)
def test_a_file_that_does_not_fit_is_told_and_nothing_written(
    cynosure: Cynosure, place: Path, tmp_path: Path, name: str, text: str | None, told: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    done = cynosure("tables", "append", "orders", name, *WHERE)

    assert done.code == 1
    assert told in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert read(place) == []


def test_a_file_without_rows_is_told(cynosure: Cynosure, place: Path, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("id,name\n")

    done = cynosure("tables", "append", "orders", "day.csv", *WHERE)

    assert (done.code, done.out) == (0, "day.csv has no rows: nothing was appended.\n")
