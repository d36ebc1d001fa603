"""Errors as a side channel: nothing that fails on a hidden row fails for who cannot see it.

Every error is tried in every place, under every kind of filter, on every engine: some of it in each run of
the suite, all of it with CYNOSURE_SOAK_GOVERNED=1. The same statement over a copy without the hidden row must
give the same answer, and the same statement by who sees the row must fail.
"""

import asyncio
import os
from collections.abc import Sequence
from itertools import compress
from typing import Any

import pytest

from cynosure.testing.login import Credential
from cynosure.testing.query_server import run_to_end
from tests.query.redteam.probes import ERRORS, PLACES, WHOLE
from tests.query.redteam.vault import FILTERS, HIDDEN, Vault

pytestmark = pytest.mark.anyio

IS_SOAK = os.environ.get("CYNOSURE_SOAK_GOVERNED") == "1"
Probe = tuple[str, str]
"""An error and its place; the name of a whole statement, and nothing."""
_STEP = 7
_AT_ONCE = 4
_BATCH = 8
SURELY_LOCAL = {"division", "quotient", "remainder", "overflow", "product", "narrow", "decimal"}
"""Some of the errors that the local engine makes as Spark does."""


def probes_for(
    number: int, errors: Sequence[str], places: Sequence[str], whole: Sequence[str]
) -> list[Probe]:
    """Each error once, each place at least once, all whole statements; other pairs for other numbers."""
    statements = [(each, "") for each in whole]
    if IS_SOAK:
        return [(error, place) for error in errors for place in places] + statements
    most = max(len(errors), len(places))
    return [
        (errors[at % len(errors)], places[(at + number * _STEP) % len(places)]) for at in range(most)
    ] + statements


def probes_on_spark(*, is_native: bool) -> list[Probe]:
    """A half for each leaf: statements are slow there."""
    probes = probes_for(int(is_native), list(ERRORS), list(PLACES), list(WHOLE))
    return probes if IS_SOAK else probes[int(is_native) :: 2]


def query_of(probe: Probe, table: str) -> str:
    text = PLACES[probe[1]].replace("{e}", ERRORS[probe[0]]) if probe[1] else WHOLE[probe[0]]
    return text.replace("{t}", f"lake.ns.{table}")


def batch_of(probes: Sequence[Probe], table: str) -> str:
    """Many at once: any that fails would fail the whole."""
    each = (
        f"SELECT '{number}' AS probe, to_json(struct(q.*)) AS v FROM ({query_of(probe, table)} LIMIT 50) q"
        for number, probe in enumerate(probes)
    )
    return " UNION ALL ".join(each)


async def answer(vault: Vault, who: Credential, sql: str) -> Any:
    """Rows in no order, or the failure."""
    async with vault.scene.client(who) as http:
        found = await run_to_end(http, sql)
    if isinstance(found, dict):
        details = found.get("details", {})
        return found["type"], found["message"], details.get("condition") or details.get("part")
    return sorted(map(repr, found.to_pylist()))


async def answers(vault: Vault, who: Credential, statements: Sequence[str]) -> list[Any]:
    """Of many, some at once."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(sql: str) -> Any:
        async with turns:
            return await answer(vault, who, sql)

    return list(await asyncio.gather(*(one(each) for each in statements)))


def check_fired(probes: Sequence[Probe], found: Sequence[Any]) -> None:
    quiet = [(probe, each) for probe, each in zip(probes, found, strict=True) if not is_failure(each)]
    assert not quiet, quiet


def is_failure(found: Any) -> bool:
    """Of the statement on its rows."""
    return isinstance(found, tuple) and found[0] == "QueryFailedException"


@pytest.fixture(scope="module")
async def run_here(vault: Vault) -> tuple[list[str], list[str], list[str]]:
    """The errors, places and whole statements that this gateway, which has no Spark, does not refuse."""
    errors = [(each, "where") for each in ERRORS]
    places = [("division", each) for each in PLACES]
    probes = [*errors, *places, *((each, "") for each in WHOLE)]
    found = await answers(vault, vault.mia, [query_of(each, "copy") for each in probes])
    run = [isinstance(each, list) for each in found]
    at = len(errors), len(errors) + len(places)
    local = (
        list(compress(ERRORS, run)),
        list(compress(PLACES, run[at[0] :])),
        list(compress(WHOLE, run[at[1] :])),
    )
    assert set(local[0]) >= SURELY_LOCAL
    assert len(local[1]) > len(PLACES) * 0.7
    assert {"sum", "one row"} <= set(local[2])
    return local


@pytest.mark.parametrize("kind", FILTERS)
async def test_what_fails_on_a_hidden_row_does_not_fail_for_who_cannot_see_it_in_process(
    vault: Vault, run_here: tuple[list[str], list[str], list[str]], kind: str
) -> None:
    probes = probes_for(list(FILTERS).index(kind), *run_here)
    queries = [query_of(probe, kind) for probe in probes]
    governed = await answers(vault, vault.mia, queries)
    copies = await answers(vault, vault.mia, [query_of(probe, "copy") for probe in probes])
    for probe, mine, theirs in zip(probes, governed, copies, strict=True):
        assert mine == theirs, probe
        assert not is_failure(mine), probe
        assert HIDDEN not in str(mine)
    # What is outside of the local subset is refused, by who asks over which table alike.
    run = [at for at, mine in enumerate(governed) if isinstance(mine, list)]
    assert len(run) > len(probes) * 0.7
    found = await answers(vault, vault.auditor, [queries[at] for at in run])
    check_fired([probes[at] for at in run], found)


async def test_what_fails_on_a_hidden_row_does_not_fail_for_who_cannot_see_it_on_spark(spark: Vault) -> None:
    is_native = spark.scene.directory.name == "native"
    own = list(FILTERS)[int(is_native) :: 2]
    probes = probes_on_spark(is_native=is_native)
    for number, begin in enumerate(range(0, len(probes), _BATCH)):
        some = probes[begin : begin + _BATCH]
        kinds = list(FILTERS) if IS_SOAK else [own[number % len(own)]]
        copy, *governed = await answers(spark, spark.mia, [batch_of(some, each) for each in ("copy", *kinds)])
        assert isinstance(copy, list), (some, copy)
        for kind, mine in zip(kinds, governed, strict=True):
            assert mine == copy, (kind, some)
            assert HIDDEN not in str(mine)


async def test_the_same_statements_fail_for_who_sees_the_row_on_spark(spark: Vault) -> None:
    is_native = spark.scene.directory.name == "native"
    probes = probes_on_spark(is_native=is_native)
    if is_native and not IS_SOAK:
        probes = probes[::3]  # what fails is the same engine as above the other leaf
    check_fired(probes, await answers(spark, spark.auditor, [query_of(each, "mapped") for each in probes]))
