"""The whole way: a real server, its sinks, and somebody who follows its events over a restart."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import start_catalog_server
from cynosure.testing.harness.processes import Processes

from .receiver import open_receiver

pytestmark = pytest.mark.anyio


async def wait_for(is_done: Callable[[], bool], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not is_done():  # noqa: ASYNC110 - of other processes, which tell nothing
            await asyncio.sleep(0.05)


def created(lines: list[str]) -> list[str]:
    """Principals that these lines of JSON say were created by a client."""
    events = [json.loads(line) for line in lines]
    told = [each.get("data", each) for each in events]
    return [
        each["targets"][0]["name"]
        for each in told
        if each["operation"] == "create-principal" and each["principal"] == "root"
    ]


async def test_everything_reaches_file_webhook_and_followers_over_a_restart(
    processes: Processes, tmp_path: Path
) -> None:
    """I45."""
    path, followed = tmp_path / "events.jsonl", tmp_path / "followed.jsonl"
    with open_receiver() as receiver:
        environment = {
            "CYNOSURE_AUTH__AUDIT__FILE": str(path),
            "CYNOSURE_AUTH__AUDIT__WEBHOOK__URL": receiver.url,
            "CYNOSURE_AUTH__AUDIT__COLLECT_EVERY": "200ms",
        }
        server = await start_catalog_server(processes, tmp_path, env=environment)

        def lines(file: Path) -> list[str]:
            """Whole ones."""
            return file.read_text().split("\n")[:-1] if file.exists() else []

        def has_told(names: list[str]) -> bool:
            """At least once: what was not noted when the server stopped is told again."""
            told = (created(lines(path)), created(received()))
            return all(list(dict.fromkeys(each)) == names for each in told)

        def received() -> list[str]:
            return [json.dumps(event) for event in receiver.taken()]

        command = [sys.executable, "-m", "cynosure", "events", "tail", "--follow", "--json"]
        with followed.open("wb") as out:
            follower = await asyncio.create_subprocess_exec(
                *command, "--data", str(server.data), stdout=out, stderr=asyncio.subprocess.DEVNULL
            )
        try:
            async with server.client() as http:
                for at in range(3):
                    await Admin(http).create_principal(f"p{at}")
            before = ["p0", "p1", "p2"]
            await wait_for(lambda: has_told(before))
            await wait_for(lambda: created(lines(followed)) == before)

            await server.process.stop()
            await server.process.start()
            async with server.client() as http:
                assert (await http.get("/api/management/v1/principals/p0")).status_code == 200
                await Admin(http).create_principal("p3")

            after = [*before, "p3"]
            await wait_for(lambda: has_told(after))
            await wait_for(lambda: created(lines(followed)) == after)
        finally:
            follower.terminate()
            await follower.wait()
        assert "hidden-token" not in server.process.log()
