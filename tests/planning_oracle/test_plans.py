"""Plans of random scans of random tables, through the endpoints: exact rows, and PyIceberg's own plan (I86).

A case is one scan. Its plan is executed as a reader would: the rows of each file, without those that the
delete files of its task remove, and of them those for which the residual holds. These must be exactly the
rows that the table has by its history and that match the filter. Then PyIceberg plans the same scan from the
exported metadata file.

Half of the tables and filters are plain, and there files and delete files are the same as PyIceberg's. Where
PyIceberg 0.12 differs or refuses, rows alone decide:

- equality deletes, and snapshots of version 1 that name their manifests themselves: refused
- deletion vectors: it ignores the data file they name, and takes them for those of a partition
- NaN, `not`, `not-starts-with`, times before 1970: see `tests/iceberg/pruning/test_oracle.py`
- sets: it tests the least and the greatest value, and keeps more files
- transforms and comparisons of two columns: its expressions have no words for them
- a partition that is null and must be compared: its residuals fail (`plans.py` then takes its plan apart);
  a partition that is a UUID: its residuals and projections fail

CYNOSURE_PLANNING_TABLES is how many tables each test tries (default 44: 264 point-in-time scans).
"""

import os
import random
from typing import Any

import pytest

from tests.planning_oracle.conftest import Lake
from tests.planning_oracle.filters import Filter, Filters, Reader
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.model import Snapshot
from tests.planning_oracle.plans import Plan, open_by_pyiceberg, plan_by_pyiceberg, plan_by_us
from tests.planning_oracle.shape import Leaf

pytestmark = pytest.mark.anyio

TABLES = int(os.environ.get("CYNOSURE_PLANNING_TABLES", "44"))
SCANS = 6
TABLE = "namespaces/a/tables/t"


def check_rows(
    table: RandomTable, leaves: list[Leaf], scan: Filter, alive: dict[str, frozenset[int]], plan: Plan
) -> None:
    """The plan, executed, gives exactly the rows that are asked for, in both orders of numbers."""
    assert plan.keys() <= alive.keys(), "a file that is not in the table"
    for is_total in (False, True):
        reader = Reader(leaves, is_total=is_total)
        for path, living in alive.items():
            rows = table.rows[path]
            wanted = {at for at in living if reader.holds(scan.json, rows[at])}
            if path not in plan:
                assert not wanted, f"{path} is missing"
                continue
            task = plan[path]
            deletes = [table.deletes[each] for each in task.deletes]
            left = {
                at for at, row in enumerate(rows) if not any(one.removes(path, at, row) for one in deletes)
            }
            assert left == living, f"{path}: not the deletes that apply"
            assert {at for at in left if reader.holds(task.residual, rows[at])} == wanted
            assert [reader.holds(task.residual, row) for row in rows] == [
                reader.holds(scan.json, row) for row in rows
            ]
            assert task.record_count == len(rows)


def compare(table: RandomTable, scan: Filter, ours: Plan, theirs: Plan | None) -> None:
    """The same files and delete files as PyIceberg."""
    if theirs is None:
        return
    if scan.has_set:
        assert ours.keys() <= theirs.keys()
    else:
        assert ours.keys() == theirs.keys()
    for path in ours.keys() & theirs.keys():
        if table.version < 3:
            assert ours[path].deletes == theirs[path].deletes
        if theirs[path].residual is True:
            assert ours[path].residual is True


@pytest.mark.parametrize("seed", range(TABLES))
async def test_a_plan_has_the_rows_that_are_asked_for_and_is_that_of_pyiceberg(lake: Lake, seed: int) -> None:
    is_plain = seed % 2 == 0
    table = lake.make_table(seed, is_plain=is_plain)
    exported = await lake.register(table)
    rng = random.Random(seed)
    for at in range(SCANS):
        snapshot: Snapshot = rng.choice(table.snapshots)
        is_old_schema = rng.random() < 0.3
        schema_id = snapshot.schema_id if is_old_schema else len(table.shape.columns) - 1
        is_case_sensitive = rng.random() < 0.7
        leaves = table.shape.leaves(schema_id)
        scan = Filters(table, leaves, rng, is_case_sensitive=is_case_sensitive).make()
        request: dict[str, Any] = {
            "snapshot-id": snapshot.id,
            "filter": scan.json,
            "case-sensitive": is_case_sensitive,
            "use-snapshot-schema": is_old_schema,
        }
        if at == 0:
            # Neither filter nor snapshot: everything that is there now.
            snapshot, scan, request = table.snapshots[-1], Filter(json=True, theirs=None), {}
            leaves = table.shape.leaves()

        ours = await plan_by_us(lake.client, TABLE, request)

        check_rows(table, leaves, scan, snapshot.alive, ours)
        if at == 0:
            assert ours.keys() == snapshot.alive.keys()
        if is_plain and scan.is_plain and scan.theirs is not None:
            theirs = open_by_pyiceberg(exported, table.files, schema_id).scan(
                row_filter=scan.theirs, snapshot_id=snapshot.id, case_sensitive=is_case_sensitive
            )
            compare(table, scan, ours, plan_by_pyiceberg(theirs))


@pytest.mark.parametrize("seed", range(1000, 1000 + TABLES // 2))
async def test_an_incremental_plan_has_what_was_appended_and_is_that_of_pyiceberg(
    lake: Lake, seed: int
) -> None:
    is_plain = seed % 2 == 0
    table = lake.make_table(seed, is_plain=is_plain)
    exported = await lake.register(table)
    rng = random.Random(seed)
    leaves = table.shape.leaves()
    for _ in range(3 if len(table.snapshots) > 1 else 0):
        first, last = sorted(rng.sample(range(len(table.snapshots)), k=2))
        start, end = table.snapshots[first], table.snapshots[last]
        scan = Filters(table, leaves, rng).make(1)
        request = {"start-snapshot-id": start.id, "end-snapshot-id": end.id, "filter": scan.json}

        ours = await plan_by_us(lake.client, TABLE, request)

        appended = {
            path: frozenset(range(len(table.rows[path])))
            for one in table.snapshots[first + 1 : last + 1]
            if one.operation == "append"
            for path in one.added
        }
        check_rows(table, leaves, scan, appended, ours)
        assert not any(task.deletes for task in ours.values())
        if is_plain and scan.is_plain and scan.theirs is not None:
            theirs = open_by_pyiceberg(exported, table.files).incremental_append_scan(
                row_filter=scan.theirs,
                from_snapshot_id_exclusive=start.id,
                to_snapshot_id_inclusive=end.id,
            )
            compare(table, scan, ours, plan_by_pyiceberg(theirs))
