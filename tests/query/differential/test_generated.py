"""Queries by chance, governed, answer as they do on a copy of what the reader may see; on all engines alike.

`./dev soak governed` runs all of them on all engines; otherwise a part, the same each time.
"""

import os

import pyarrow as pa
import pytest

from tests.query.differential.comparing import find_difference, is_refused
from tests.query.differential.generating import make_queries
from tests.query.differential.world import IS_SOAK, Answer, Gateways, share, start_of
from tests.query.served import ENGINES

COUNT = int(os.environ.get("CYNOSURE_SOAK_GOVERNED_QUERIES", "360")) if IS_SOAK else 36
PARTS = -(-COUNT // 36)


@pytest.fixture(scope="session")
def queries(data: dict[str, pa.Table]) -> list[str]:
    seed = os.environ.get("CYNOSURE_SOAK_GOVERNED_SEED")
    notes = {
        "lineitem": data["lineitem"].append_column("l_note", pa.array(["note 3"] * data["lineitem"].num_rows))
    }
    return make_queries({**data, **notes}, COUNT, *([int(seed)] if seed else []))


@pytest.fixture(scope="session")
def on_the_copy(gateways: Gateways) -> dict[str, Answer]:
    """What was found there already."""
    return {}


def ask_the_copy(gateways: Gateways, known: dict[str, Answer], texts: list[str], engine: str) -> None:
    """By the local engine; by Spark, what that does not know, if Spark is compared."""
    for asked in ("local",) if engine == "local" else ("local", "isolated"):
        missing = [each for each in texts if each not in known or is_refused(known[each])]
        known.update(zip(missing, gateways.ask(asked, "uma", "copy", missing), strict=True))


def test_they_would_notice(gateways: Gateways, queries: list[str]) -> None:
    """The control: whoever sees everything gets other answers."""
    chosen = queries[:24]
    answers = [gateways.ask("local", who, where, chosen) for who, where in (("sue", "tpch"), ("uma", "copy"))]
    differ = [
        sql
        for sql, one, other in zip(chosen, *answers, strict=True)
        if not is_refused(one) and find_difference(one, other, is_ordered="ORDER BY 1" in sql)
    ]
    assert len(differ) > len(chosen) // 3


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ENGINES)
def test_they_answer_as_on_the_copy(
    engine: str, part: int, gateways: Gateways, queries: list[str], on_the_copy: dict[str, Answer]
) -> None:
    chosen = queries[part::PARTS][start_of(engine) :: share(engine, 5)]
    ask_the_copy(gateways, on_the_copy, chosen, engine)
    found = dict(zip(chosen, gateways.ask(engine, "ann", "tpch", chosen), strict=True))
    wrong = {
        sql: difference
        for sql, answer in found.items()
        if not (engine == "local" and is_refused(answer))
        and (difference := find_difference(answer, on_the_copy[sql], is_ordered="ORDER BY 1" in sql))
    }
    assert not wrong
    # Else it would be a test of nothing.
    answered = [each for each in found.values() if isinstance(each, pa.Table)]
    assert len(answered) > len(chosen) * 0.7
    assert sum(bool(each.num_rows) for each in answered) > len(chosen) * (0.5 if len(chosen) > 30 else 0.3)
