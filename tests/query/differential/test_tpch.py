"""The 22 queries of TPC-H, governed, answer as they do on a copy of what the reader may see (I102)."""

import pytest

from tests.query.differential.comparing import find_difference
from tests.query.differential.world import IS_SOAK, Answer, Gateways, share, start_of
from tests.query.local.tpch import QUERIES
from tests.query.served import ENGINES

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in QUERIES}
PARTS = 3 if IS_SOAK else 1
MOSTLY_FOUND = 17
"""So many of the 22 find something, on a hundredth of TPC-H with much of it hidden."""


@pytest.fixture(scope="session")
def on_the_copy(gateways: Gateways) -> dict[str, Answer]:
    """What an unrestricted reader of the copy gets, by the local engine."""
    return dict(zip(TEXTS, gateways.ask("local", "uma", "copy", TEXTS.values()), strict=True))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ENGINES)
def test_the_22(engine: str, part: int, gateways: Gateways, on_the_copy: dict[str, Answer]) -> None:
    """Since all engines agree with one answer, they agree with each other."""
    names = list(TEXTS)[part::PARTS][start_of(engine) :: share(engine, 4)]
    found = dict(
        zip(names, gateways.ask(engine, "ann", "tpch", (TEXTS[each] for each in names)), strict=True)
    )
    wrong = {
        name: difference
        for name, answer in found.items()
        if (difference := find_difference(answer, on_the_copy[name], is_ordered="ORDER BY" in TEXTS[name]))
    }
    assert not wrong


def test_they_find_something(on_the_copy: dict[str, Answer]) -> None:
    found = {name: answer for name, answer in on_the_copy.items() if not isinstance(answer, dict)}
    assert found.keys() == TEXTS.keys()
    assert sum(bool(answer.num_rows) for answer in found.values()) >= MOSTLY_FOUND
