"""The judge of a catalog storm finds what it looks for."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cynosure.testing.catalog_storm.clients import Ledger, Sent
from cynosure.testing.catalog_storm.judge import judge_file, judge_table

LEDGER = Ledger(
    [
        Sent(0, "t", "snapshot", 11, "acknowledged", 200),
        Sent(0, "t", "snapshot", 12, "sent"),
        Sent(0, "t", "snapshot", 13, "refused", 409),
        Sent(1, "t", "count", 4, "acknowledged", 200),
        Sent(1, "t", "count", 5, "sent"),
        Sent(1, "t", "count", 6, "refused", 409),
        Sent(1, "other", "count", 9, "acknowledged", 200),
    ]
)


def table(*snapshots: int, count: int = 4) -> dict[str, Any]:
    return {
        "snapshots": [{"snapshot-id": each} for each in snapshots],
        "properties": {"client-1": str(count)} if count else {},
    }


@pytest.mark.parametrize("found", [table(11), table(11, 12), table(11, 12, count=5)])
def test_what_was_told_is_there_and_the_rest_may_be(found: dict[str, Any]) -> None:
    assert judge_table("t", found, LEDGER) == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (table(12), "acknowledged snapshot 11 is lost"),
        (table(11, 11), "snapshot 11 is there 2 times"),
        (table(11, 13), "snapshot 13 was refused"),
        (table(11, 99), "snapshot 99 was refused, or nobody sent it"),
        (table(11, count=3), "was told 4, the table says 3"),
        (table(11, count=0), "was told 4, the table says 0"),
        (table(11, count=6), "never sent 6, or it was refused"),
        (table(11, count=9), "never sent 9"),
    ],
)
def test_every_kind_of_loss_is_named(found: dict[str, Any], problem: str) -> None:
    assert any(problem in each for each in judge_table("t", found, LEDGER))


def test_a_file_says_what_the_server_says(tmp_path: Path) -> None:
    plain, packed = tmp_path / "1.metadata.json", tmp_path / "1.gz.metadata.json"
    plain.write_bytes(json.dumps(table(11)).encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    def problems(path: Path, metadata: dict[str, Any]) -> list[str]:
        return judge_file({"metadata-location": f"file://{path}", "metadata": metadata})

    assert problems(plain, table(11)) == problems(packed, table(11)) == []
    assert problems(plain, table(12))
    assert problems(tmp_path / "gone", table(11))
    plain.write_bytes(b"{")
    assert problems(plain, table(11))
