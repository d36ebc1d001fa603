"""Statements whose answers somebody wrote down: `cases/*.txt`, on all engines.

A case is a line `## why`, a line `who: statement`, and a line per row; or `error: CONDITION`. Rows come in
this order.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.query.differential.comparing import is_refused
from tests.query.differential.small import fill_small
from tests.query.differential.world import Answer, Gateways, share, start_of
from tests.query.served import ENGINES

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


class Case(NamedTuple):
    why: str
    who: str
    sql: str
    rows: list[str]


def read_cases(path: Path) -> list[Case]:
    """All of a file."""
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip().splitlines()
        if lines and lines[0].startswith("## "):
            who, _, sql = lines[1].partition(": ")
            found.append(Case(lines[0].removeprefix("## "), who, sql, lines[2:]))
    return found


CASES = [case for path in FILES for case in read_cases(path)]


@pytest.fixture(scope="session")
def small(gateways: Gateways) -> Gateways:
    gateways.users.update(gateways.loop.run(fill_small(gateways.scene)))
    return gateways


def test_the_texts_are_read() -> None:
    assert len(CASES) >= 40
    assert {case.who for case in CASES} == {"ann", "bob", "carl", "pam"}


@pytest.mark.parametrize("engine", ENGINES)
def test_cases(engine: str, small: Gateways) -> None:
    chosen = CASES[start_of(engine) :: share(engine, 4)]
    found: dict[str, Answer] = {}
    for who in ("ann", "bob", "carl", "pam"):
        own = [case for case in chosen if case.who == who]
        answers = small.ask(engine, who, "small", [case.sql for case in own])
        found |= {case.why: answer for case, answer in zip(own, answers, strict=True)}
    wrong = {
        f"{case.why} {case.sql}": told
        for case in chosen
        if not (engine == "local" and is_refused(found[case.why]))
        and (told := write_answer(found[case.why])) != case.rows
    }
    assert not wrong
    known = [each for each in found.values() if not is_refused(each)]
    assert len(known) > len(chosen) * 0.8


def write_answer(answer: Answer) -> list[str]:
    """As it is written down in a case."""
    if isinstance(answer, dict):
        return [f"error: {answer.get('details', {}).get('condition') or answer}"]
    return [
        " | ".join(map(write_value, row))
        for row in zip(*(each.to_pylist() for each in answer.columns), strict=True)
    ]


def write_value(value: Any) -> str:
    return "NULL" if value is None else str(value)
