"""Nothing that a governed scan knows is written anywhere: not by Spark, not by the gateway, not by a client.

Searched are credentials of the store, tokens of users, constants of filters, hidden and masked values: while
statements run and afterwards, also after statements that failed, were cancelled, or had enough rows.
"""

import asyncio
import base64
import os
import re
import sys
from pathlib import Path

import pytest

from cynosure.testing.catalog_server import run_cynosure
from cynosure.testing.query_server import API
from tests.query.faults.scene import ALL, EXPECTED, HIDDEN, SHUFFLED, TABLE, FaultScene
from tests.query.faults.searching import Search

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif("CYNOSURE_SOAK_GOVERNED" not in os.environ, reason="./dev soak governed"),
]


async def test_nothing_that_a_scan_knows_is_written_anywhere(scene: FaultScene, tmp_path: Path) -> None:
    said: list[str] = []
    statement, answer = await scene.begin_reading(0.4)
    first = Search(scene)
    during = await asyncio.to_thread(first.everywhere)
    assert await answer == EXPECTED
    scene.proxy.clear()
    assert await scene.ids(SHUFFLED) == [len(EXPECTED)]
    second = Search(scene)
    during |= await asyncio.to_thread(second.in_files)
    first.check_pages()
    second.check_shuffled()
    assert len(await scene.ids(f"{ALL} LIMIT 3")) == 3
    said.append(await scene.query.explain(scene.ann, f"EXTENDED {ALL} WHERE id > 10"))
    for wrong in (
        f"SELECT id / 0 AS id FROM lake.{TABLE}",
        f"SELECT CAST(card AS INT) AS id FROM lake.{TABLE}",
        f"SELECT id FROM lake.{TABLE} WHERE nothing = 1",
    ):
        said.append(str(await scene.query.fails(scene.ann, wrong)))
    _, cancelled = await scene.begin_reading(2.0)
    async with scene.query.client(scene.ann) as http:
        listed = (await http.get(f"{API}/statements")).text
        said.append(listed)
        for each in re.findall(r'"id":"([0-9a-f-]{36})"', listed):
            said.append((await http.delete(f"{API}/statements/{each}")).text)
    said.append(str(await cancelled))
    scene.proxy.clear()
    _, failing = await scene.begin_reading(0.4)
    await scene.proxy.stop()
    said.append(str(await failing))
    await scene.proxy.start()
    said.append(await _run_client(scene, tmp_path))
    audit = await scene.query.events()
    assert sum(each["kind"] == "query" for each in audit) >= 8, "the statements are among what is searched"
    said.append(str(audit))
    said.append(str(await scene.state(statement)))
    await scene.check_quiet()

    search = Search(scene)
    after = await asyncio.to_thread(search.everywhere)
    told = {each for text in said for each in search.in_bytes(text.encode(), f"answer {text[:40]}")}
    assert (during, after, told) == (set(), set(), set())


async def _run_client(scene: FaultScene, home: Path) -> str:
    """What `cynosure sql` prints, and what it keeps for later."""
    printed = await run_cynosure(
        *("sql", "--gateway", scene.query.url, "--url", scene.query.catalog.url),
        *("--client-id", scene.ann.client_id, "-c", f"{ALL} ORDER BY id LIMIT 2"),
        env={
            "CYNOSURE_CLIENT_SECRET": scene.ann.secret,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
        },
    )
    kept = [each.read_text("utf-8", "replace") for each in home.rglob("*") if each.is_file()]
    return "\n".join([printed, *kept])


async def test_pages_of_spark_stay_off_whatever_an_administrator_says(scene: FaultScene) -> None:
    """The scene's settings switch them on; the event log, which is on, says what became of that."""
    await scene.ids()
    told = [each for each in scene.events() if each["Event"] == "SparkListenerEnvironmentUpdate"]
    assert told
    properties = dict(told[-1]["Spark Properties"])
    assert properties["spark.ui.enabled"] == "false"
    assert properties["spark.io.encryption.enabled"] == "true"


async def test_the_search_finds_what_is_there(scene: FaultScene) -> None:
    await scene.ids()
    session = scene.tokens.sessions[-1]
    drawn = scene.spied.read_text("ascii").split()
    token, salt = (drawn[drawn.index(kind) + 1] for kind in ("token", "salt"))
    search = Search(scene)
    assert search.in_files() == set()
    places = [scene.directory / "local-0" / "control", scene.directory / "events" / "control"]
    for place, word in zip(places, (session.secret, HIDDEN), strict=True):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"..." + base64.b64encode(b"ab" + word.encode() + b"c"))
    try:
        found = search.in_files()
    finally:
        for place in places:
            place.unlink()
    assert {each.partition(" in ")[0] for each in found} >= {"a secret key", "a hidden value"}
    told = f"Bearer {scene.ann.secret} {token} salt={salt}".encode() + bytes.fromhex(salt)
    kinds = {"a client secret", "a fragment's token", "a salt"}
    assert {each.partition(" in ")[0] for each in search.in_bytes(told, "a text")} == kinds
    control = await scene.query.processes.start(
        "control",
        [sys.executable, "-c", "import time; time.sleep(600)", session.key_id],
        env={"CONTROL": session.token},
    )
    try:
        found = search.in_processes()
    finally:
        control.kill9()
    assert {each.partition(" in ")[0] for each in found} >= {"a key", "a session"}
