"""The native leaf against the governed scan: the same task, the same rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from cynosure.query.scan_task import ScanTask
from cynosure.testing.scan_kit import read_table
from tests.query.spark.native.world import to_relation
from tests.query.spark.world import Sparks

AT_ONCE = 24
"""Leaves of one statement."""


def check_same(natives: Sparks, tasks: Mapping[str, ScanTask], directory: Path, **table: Any) -> int:
    """All tasks give the same columns. How many rows there were in all."""
    total = 0
    names = list(tasks)
    for begin in range(0, len(names), AT_ONCE):
        chunk = names[begin : begin + AT_ONCE]
        found = read_natively(natives, {name: tasks[name] for name in chunk}, directory, **table)
        for name in chunk:
            expected = read_table(tasks[name])
            assert found[name].schema == expected.schema, name
            assert in_order(found[name]) == in_order(expected), name
            total += expected.num_rows
    return total


def read_natively(
    natives: Sparks, tasks: Mapping[str, ScanTask], directory: Path, **table: Any
) -> dict[str, pa.Table]:
    """What the native leaf gives of each task, in one statement."""
    # Some are read by our scan all the same, and fragments of a statement are told apart by their ids.
    scans = [replace(task, fragment_id=str(at)) for at, task in enumerate(tasks.values())]
    relations = [to_relation(task, directory, f"cyn_{at}", **table) for at, task in enumerate(scans)]
    columns = [column.name for column in relations[0].columns]
    chosen = ", ".join(f"`{name}`" for name in columns)
    statement = " UNION ALL ".join(
        f"SELECT {at} AS `which`, {chosen} FROM cyn_{at}" for at in range(len(tasks))
    )
    rows = natives.table(statement, *relations, columns=("which", *columns))
    return {name: rows.filter(pc.equal(rows.column(0), at)).drop(["which"]) for at, name in enumerate(tasks)}


def in_order(table: pa.Table) -> list[str]:
    """Rows as texts, sorted: NaN equals itself, and the zeros differ."""
    return sorted(map(repr, table.to_pylist()))
