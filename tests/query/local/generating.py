"""Expressions and queries made by combination: operators with pairs of types, aggregates with all types."""

import itertools
import random
from collections.abc import Callable

NUMBERS = ("i", "j", "l", "x", "f", "a", "b", "c", "e", "3", "2.5", "1e2", "null")
COMPARED = (*NUMBERS, "s", "t", "dt", "du", "ts", "n", "z", "'abc'", "'2020-01-31'")
SEED = 20_261_116


def make_expressions(is_inside: Callable[[str], bool], count: int = 280) -> list[str]:
    """Random ones that are in the subset and cannot fail on the rows of `v`."""
    chance = random.Random(SEED)
    arithmetic = [
        f"{one} {operator} {other}"
        for operator, one, other in itertools.product("+-*", NUMBERS, NUMBERS)
        if one not in ("3", "2.5", "1e2", "null") and not (operator == "*" and {one, other} <= {"l"})
    ]
    divisions = [
        f"{one} / {other}" for one, other in itertools.product(NUMBERS, ("j", "b", "c", "y", "2.5", "7"))
    ]
    comparisons = [
        f"{one} {operator} {other}"
        for operator, one, other in itertools.product(("=", "<", ">=", "<=>"), COMPARED, COMPARED)
    ]
    choices = [
        text.format(one, other)
        for text, one, other in itertools.product(
            ("coalesce({0}, {1})", "if(id > 3, {0}, {1})", "greatest({0}, {1})", "nullif({0}, {1})"),
            COMPARED,
            COMPARED,
        )
    ]
    nested = [
        f"({chance.choice(arithmetic)}) {chance.choice('+-*')} {chance.choice(NUMBERS)}" for _ in range(60)
    ] + [f"case when {chance.choice(comparisons)} then {chance.choice(arithmetic)} end" for _ in range(60)]
    found: list[str] = []
    for texts, share in ((arithmetic, 70), (divisions, 40), (comparisons, 60), (choices, 60), (nested, 50)):
        chance.shuffle(texts)
        inside = (each for each in texts if is_inside(each))
        found.extend(itertools.islice(inside, share * count // 280))
    return found


def make_queries(count: int = 24) -> list[str]:
    """Random groups, joins and windows."""
    chance = random.Random(SEED)
    keys = ("z", "id % 3", "year(dt)", "upper(t)", "a > 1", "x", "e")
    values = ("i", "l", "a", "b", "c", "e", "j")
    made = []
    for number in range(count):
        key = chance.choice(keys)
        columns = ", ".join(
            f"{chance.choice(('sum', 'avg', 'min', 'max', 'count'))}({chance.choice(values)})"
            for _ in range(4)
        )
        over = f"partition by {chance.choice(keys[:3])} order by id"
        made.append(
            (
                f"select {key}, {columns} from v group by {key} order by 1",
                f"select v.id, {columns} from v left join w on v.id = w.id group by v.id order by 1",
                f"select id, sum({chance.choice(values)}) over ({over}), "
                f"avg({chance.choice(values)}) over ({over}), rank() over ({over}) from v order by id",
                f"select {key} as k from v where {chance.choice(values)} > 0 "
                f"union select {key} from v order by 1",
            )[number % 4]
        )
    return made
