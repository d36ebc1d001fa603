"""What is answered about a table of which rows or columns are hidden."""

from pathlib import Path
from typing import Any

import pytest

from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.restrictions import answering
from cynosure.catalog.restrictions.answering import RestrictedAnswers, reduce_metadata
from cynosure.iceberg.restrictions.wire import ReadRestrictions
from tests.catalog.tables import T
from tests.catalog.world import open_lake


def test_counts_of_rows_and_statistics_are_left_out_and_all_else_stays() -> None:
    snapshot: dict[str, Any] = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 5,
        "manifest-list": "file:///m",
        "schema-id": 0,
    }
    metadata = {"format-version": 3, "location": "file:///t", "x-unknown": {"a": 1}, "refs": {"main": {}}}

    reduced = reduce_metadata(
        {
            **metadata,
            "next-row-id": 42,
            "snapshots": [
                {
                    **snapshot,
                    "first-row-id": 0,
                    "added-rows": 42,
                    "summary": {"operation": "append", "total-records": "42"},
                }
            ],
            "statistics": [{"snapshot-id": 1}],
            "partition-statistics": [{"snapshot-id": 1}],
        }
    )

    assert reduced == {
        **metadata,
        "next-row-id": 0,
        "snapshots": [{**snapshot, "summary": {"operation": "append"}}],
        "statistics": [],
        "partition-statistics": [],
    }


@pytest.mark.anyio
async def test_answers_are_kept_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_MOST_ANSWERS", 2)
    async with open_lake(tmp_path) as lake:
        view = await lake.catalog.read()
        ref = await require_table_ref(view, T)
        table = await load_table_at(view, ref.id, lake.catalog.shared.tables)
        wanted = [ReadRestrictions(projections={id_: "replace-with-null"}) for id_ in (1, 2, 3)]
        answers = RestrictedAnswers()

        first = answers.get(table, "all", wanted[0].json)
        answers.get(table, "all", wanted[1].json)
        assert answers.get(table, "all", wanted[0].json) is first
        answers.get(table, "all", wanted[2].json)

        assert answers.get(table, "all", wanted[0].json) is first, "used last but one"
        assert len(answers) == 2
