"""Manifests of a large table: CPU to read one file's entry and to plan it, and what it holds in memory.

A table of 100,000 files with ten columns, all metrics, partitioned by day and region. One operation is one
file of the table:

- *read*: from the bytes of its manifest to packed columns; *read, PyIceberg*: to PyIceberg's entries
- *plan a month*: from packed columns to the JSON of the files that a filter on the time column keeps
- *plan a value*: the same for a filter on a column that the table is not partitioned by
- *plan all*: the same without a filter
- *plan a month, PyIceberg* and so on: PyIceberg's own planning of the same scan; it reads manifests each time

    ./dev bench manifests --set files=20000

A maintainer must not break: what is planned is checked against PyIceberg's plan before anything is measured.
"""

import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from benchmarks.manifest_table import DAY_US, FIRST_DAY, ManifestTable
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median, ratio
from benchmarks.results_file import Result
from cynosure.iceberg.expressions.bound import BoundComparison, BoundReference
from cynosure.iceberg.expressions.nodes import TRUE, And
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.row_encoder import RowEncoder
from cynosure.iceberg.pruning.pruner import Pruner
from cynosure.iceberg.types import LONG, TIMESTAMP

MONTH = (FIRST_DAY + 100) * DAY_US, (FIRST_DAY + 130) * DAY_US - 1
VALUE = 500_000_000
BOUND_BYTES = 300
"""For everything of a file but its bounds."""
BOUND_PER_BOUND = 16
"""For a bound: 4 or 8 bytes for a number; a text has its own bytes and four more."""


def _expressions() -> dict[str, tuple[Any, Any]]:
    """The filters: ours and PyIceberg's."""
    # Untyped: the constructors of its models take other arguments than their types say.
    theirs: Any = import_module("pyiceberg.expressions")
    literals: Any = import_module("pyiceberg.expressions.literals")

    time = BoundReference(3, "c3", TIMESTAMP, is_required=False)
    number = BoundReference(1, "c1", LONG, is_required=False)
    return {
        "plan a month": (
            And(BoundComparison("gt-eq", time, MONTH[0]), BoundComparison("lt-eq", time, MONTH[1])),
            theirs.And(
                theirs.GreaterThanOrEqual("c3", literals.TimestampLiteral(MONTH[0])),
                theirs.LessThanOrEqual("c3", literals.TimestampLiteral(MONTH[1])),
            ),
        ),
        "plan a value": (BoundComparison("eq", number, VALUE), theirs.EqualTo("c1", VALUE)),
        "plan all": (TRUE, theirs.AlwaysTrue()),
    }


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    table = ManifestTable(options.get("files", 100_000), options.get("per_manifest", 10_000))
    theirs = table.as_pyiceberg()
    manifests = table.read()
    candidates: dict[str, Round] = {
        "read": _reading(table),
        "read, PyIceberg": _measuring(table.files, lambda: _read_by_pyiceberg(theirs)),
    }
    for name, (ours, other) in _expressions().items():
        expected = {task.file.file_path for task in theirs.scan(row_filter=other).plan_files()}
        found = _plan(table, manifests, ours)
        assert len(found) == len(expected) > 0
        for path, one in zip(sorted(expected), sorted(found), strict=True):
            assert path.encode() in one
        candidates[name] = _measuring(table.files, _planning(table, manifests, ours))
        candidates[f"{name}, PyIceberg"] = _measuring(table.files, _planning_by_pyiceberg(theirs, other))
    yield candidates


def _plan(table: ManifestTable, manifests: list[Manifest], expression: Any) -> list[bytes]:
    pruner = Pruner(expression, {0: table.spec}, {0: table.types})
    found: list[bytes] = []
    for listed, manifest in zip(table.listed, manifests, strict=True):
        if pruner.keeps_manifest(listed):
            rows = pruner.rows(manifest)
            pruner.residuals(manifest, rows)
            found += RowEncoder(manifest, table.json_types).encode_many(rows)
    return found


def _planning(table: ManifestTable, manifests: list[Manifest], expression: Any) -> Callable[[], object]:
    return lambda: _plan(table, manifests, expression)


def _planning_by_pyiceberg(table: Any, expression: Any) -> Callable[[], object]:
    return lambda: list(table.scan(row_filter=expression).plan_files())


def _read_by_pyiceberg(table: Any) -> int:
    snapshot = table.current_snapshot()
    return sum(len(one.fetch_manifest_entry(table.io)) for one in snapshot.manifests(table.io))


def _measuring(files: int, once: Callable[[], object]) -> Round:
    async def run(meter: Meter) -> None:
        with meter.measuring():
            once()
        meter.count(operations=files)

    return run


def _reading(table: ManifestTable) -> Round:
    async def run(meter: Meter) -> None:
        with meter.measuring():
            table.read()
        meter.count(operations=table.files)
        # Apart from the time: to watch memory slows everything down.
        gc.collect()
        tracemalloc.start()
        manifests = table.read()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        bounds = [
            column
            for manifest in manifests
            for columns in (manifest.lower_bounds, manifest.upper_bounds)
            for column in columns.values()
        ]
        in_bounds = sum(column.size_bytes for column in bounds)
        meter.note("bytes per file without bounds", (held - in_bounds) / table.files)
        meter.note("bytes per bound", in_bounds / sum(map(len, bounds)))

    return run


def promises(result: Result) -> list[Promise]:
    """What issue F promises of planning and memory."""
    judged: list[Promise] = []
    if has(result, "read"):
        for note, bound in (
            ("bytes per file without bounds", BOUND_BYTES),
            ("bytes per bound", BOUND_PER_BOUND),
        ):
            measured = median(result, "read", lambda figures, note=note: figures.notes[note])  # type: ignore[misc]
            judged.append(Promise(f"read: {note}", "≤", bound, measured))
    for name in ("plan a month", "plan a value", "plan all"):
        other = f"{name}, PyIceberg"
        if has(result, name, other):
            judged.append(
                Promise(f"{name}: CPU below PyIceberg's", "≥", 10, ratio(result, other, name, cpu_us))
            )
    if has(result, "read", "read, PyIceberg"):
        judged.append(
            Promise("read: CPU below PyIceberg's", "≥", 1, ratio(result, "read, PyIceberg", "read", cpu_us))
        )
    return judged
