"""Statements of others: their ids, rows, texts and numbers are nobody else's."""

import asyncio
import time
import uuid

import pytest

from cynosure.testing.query_server import API
from tests.query.redteam.vault import HIDDEN, Vault

pytestmark = pytest.mark.anyio

EVENTS = "/api/management/v1/cynosure/events"
# Long enough that no identifier in an answer holds them by chance.
CONSTANTS = ("471100220033445566", "471200220033445566")
SECRET = f"SELECT num FROM lake.ns.scalar WHERE num = 'hidden-value-7f3a' AND id IN (66, {CONSTANTS[0]})"


async def test_a_statement_is_its_senders_alone(vault: Vault) -> None:
    scene = vault.scene
    async with scene.client(vault.auditor) as own, scene.client(vault.mia) as other:
        chosen = str(uuid.uuid4())
        sent = await own.post(f"{API}/statements", json={"sql": SECRET, "wait": 10, "statement-id": chosen})
        page = await own.get(sent.json()["results"], params={"wait": "30"})
        assert HIDDEN in page.text
        nothing = f"{API}/statements/{uuid.uuid4()}"
        for path in (f"{API}/statements/{chosen}", f"{API}/statements/{chosen.upper()}"):
            for tail in ("", "/results/1", "/results/2", "/results/999"):
                theirs, unknown = await other.get(path + tail), await other.get(nothing + tail)
                assert theirs.status_code == unknown.status_code == 404
                assert theirs.json()["error"]["message"] == unknown.json()["error"]["message"]
            theirs, unknown = await other.delete(path), await other.delete(nothing)
            assert (theirs.status_code, theirs.json()["error"]["type"]) == (
                unknown.status_code,
                unknown.json()["error"]["type"],
            )
        assert chosen not in (await other.get(f"{API}/statements")).text
        # The same id of another user is another statement.
        mine = await other.post(f"{API}/statements", json={"sql": SECRET, "wait": 10, "statement-id": chosen})
        if mine.is_success:
            rows = await other.get(mine.json()["results"], params={"wait": "30"})
            assert HIDDEN not in rows.text
            assert rows.json()["rows"] == []
        assert HIDDEN not in mine.text
        assert HIDDEN in (await own.get(sent.json()["results"], params={"wait": "30"})).text
        await own.get(f"{API}/statements/{chosen}")


async def test_whoever_chooses_the_id_of_another_is_in_the_audit_too(vault: Vault) -> None:
    scene, chosen = vault.scene, str(uuid.uuid4())
    for who in (vault.auditor, vault.mia):
        await scene.rows(who, "SELECT 1 AS of_a_chosen_id", **{"statement-id": chosen})
    give_up_s, told = time.monotonic() + 60, set[str]()
    while told != {"auditor", "mia"}:
        assert time.monotonic() < give_up_s, told
        await asyncio.sleep(0.1)
        told = {each["principal"] for each in await scene.events() if chosen in str(each)}


async def test_the_tables_of_the_runtime_show_ones_own_statements_without_constants(vault: Vault) -> None:
    scene = vault.scene
    await scene.rows(vault.auditor, SECRET)
    await scene.rows(vault.mia, f"SELECT num FROM lake.ns.scalar WHERE id IN (66, {CONSTANTS[1]})")
    mine = await scene.rows(vault.mia, "SELECT query_id, user, query FROM system.runtime.queries")
    assert {row[1] for row in mine} == {"mia"}
    for word in (*CONSTANTS, HIDDEN):
        assert word not in str(mine)
    ids = {row[0] for row in mine}
    tasks = await scene.rows(vault.mia, "SELECT query_id, rows, bytes FROM system.runtime.tasks")
    assert {row[0] for row in tasks} <= ids
    restricted = {row[0] for row in mine if "scalar" in row[2]}
    assert restricted
    assert not [row for row in tasks if row[0] in restricted and (row[1] or row[2])]
    theirs = await scene.rows(vault.auditor, "SELECT query FROM system.runtime.queries")
    assert any("scalar" in row[0] for row in theirs)
    assert CONSTANTS[0] not in str(theirs)
    for name in ("queries", "tasks", "workers"):
        found = await scene.rows(
            vault.mia,
            f"SELECT count(*) FROM system.runtime.{name} WHERE query LIKE '%x%'"
            if name == "queries"
            else f"SELECT count(*) FROM system.runtime.{name}",
        )
        assert len(found) == 1


async def test_the_audit_has_tables_policies_and_no_constants(vault: Vault) -> None:
    scene = vault.scene
    await scene.rows(
        vault.mia, "SELECT num FROM lake.ns.listed WHERE num = 'constant-of-mine' AND id = 470011220033445566"
    )
    wanted = {"operation": "query", "target": "ns.listed", "principal": "mia", "limit": "1000"}
    give_up_s = time.monotonic() + 60
    async with scene.catalog.client() as http:
        while not (events := (await http.get(EVENTS, params=wanted)).raise_for_status().json()["events"]):
            assert time.monotonic() < give_up_s
            await asyncio.sleep(0.1)
    text = str(events)
    assert "row-filter" in text
    for word in ("constant-of-mine", "470011220033445566", HIDDEN, "file:"):
        assert word not in text
