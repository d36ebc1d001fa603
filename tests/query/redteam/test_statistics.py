"""Statistics of files count hidden rows too. Nothing that a user sees may depend on what they say of a value.

Each of these told, before it was mended, whether some file may hold a value that was asked for; the largest
value of a hidden row then comes by halving.
"""

import re
from collections.abc import AsyncIterator

import pytest

from cynosure.testing.login import Credential
from tests.query.redteam.test_errors import IS_SOAK
from tests.query.redteam.vault import BOMB, Vault
from tests.query.served import SETTINGS

pytestmark = pytest.mark.anyio

HELD, NOT_HELD = BOMB["id"], int(str(BOMB["id"])) + 1
ELSEWHERE = (
    "SELECT count(*) FROM (SELECT raise_error('elsewhere') AS x FROM range(3)) a "
    "CROSS JOIN (SELECT id FROM lake.ns.{t} WHERE id = {id}) b WHERE a.x IS NULL"
)


@pytest.fixture(scope="module")
async def both(vault: Vault) -> AsyncIterator[Vault]:
    """A gateway that may choose between engines."""
    settings = {**SETTINGS["isolated"], "QUERY__LOCAL_EXECUTION": "on"}
    scene = await vault.scene.start_another("both", settings)
    yield vault.at(scene)
    await scene.gateway.stop()


async def test_the_choice_of_an_engine_does_not_tell_what_files_hold(both: Vault) -> None:
    async def told(who: Credential, value: object) -> str:
        text = await both.scene.explain(who, f"SELECT num FROM lake.ns.scalar WHERE id = {value}")
        return text.replace(f"= {value}", "= ?")

    assert await told(both.mia, HELD) == await told(both.mia, NOT_HELD)
    # Who sees all rows sees the difference: no file is left to read.
    held, not_held = await told(both.auditor, HELD), await told(both.auditor, NOT_HELD)
    assert "below the byte threshold" in held
    assert "fewer files than workers" in not_held


async def test_what_fails_elsewhere_in_a_statement_does_not_tell_what_files_hold(spark: Vault) -> None:
    scene = spark.scene
    both = ("scalar", "mapped")
    for table in both if IS_SOAK else both[scene.directory.name == "native" :][:1]:
        found = [
            await scene.fails(spark.mia, ELSEWHERE.format(t=table, id=value)) for value in (HELD, NOT_HELD)
        ]
        assert found[0] == found[1]
        plans = []
        for value in (HELD, NOT_HELD):
            sql = f"EXTENDED SELECT num FROM lake.ns.{table} WHERE id = {value}"
            plan = (await scene.explain(spark.mia, sql)).replace(f"= {value}", "= ?")
            plans.append(re.sub(r"#\d+L?|plan_id=\d+", "#", plan))
        assert plans[0] == plans[1]


async def test_public_metrics_do_not_tell_how_much_was_planned(vault: Vault) -> None:
    async def planned() -> str:
        async with vault.scene.client() as http:
            text = (await http.get("/metrics")).text
        return next(each for each in text.splitlines() if each.startswith("cynosure_query_planned_bytes"))

    before = await planned()
    await vault.scene.rows(vault.mia, f"SELECT num FROM lake.ns.scalar WHERE id = {HELD}")
    assert await planned() == before
    await vault.scene.rows(vault.auditor, f"SELECT num FROM lake.ns.scalar WHERE id = {HELD}")
    assert await planned() != before
