"""A catalog of one server moves to another: real processes, writers that do not stop, a kill in between.

Holds I122, I123.
"""

import asyncio
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.client.migration import Choices, Migration, MigrationState
from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.catalog_server import make_client
from cynosure.testing.harness.faults import LoseAnswer
from cynosure.testing.harness.http_proxy import is_mutation
from cynosure.testing.remote_samples import SCHEMA
from tests.federation.writes.test_two_servers import Pair, _federate, append, load, make_table, pair

__all__ = ["pair"]
pytestmark = pytest.mark.anyio

EVERYTHING = Choices()


async def federate_another(pair: Pair) -> Pair:
    """Another catalog of the same two servers: a migration ends one."""
    name = f"c{uuid.uuid4().hex[:12]}"
    await _federate(pair.near, await pair.far.create_catalog(name), pair.proxy)
    return pair._replace(name=name)


def migration(pair: Pair) -> Migration:
    async def ask(step: Mapping[str, Any]) -> MigrationState:
        async with pair.near.client(timeout=60) as http:
            path = f"{MANAGEMENT}/cynosure/catalogs/{pair.name}/migration"
            answer = await http.post(path, json=msgspec.to_builtins(step))
            assert answer.status_code == 200, answer.text
            return msgspec.json.decode(answer.content, type=MigrationState)

    return Migration(ask)


def run_command(pair: Pair, *words: str) -> subprocess.CompletedProcess[str]:
    credential = pair.near.credential
    secrets = {"CYNOSURE_CLIENT_ID": credential.client_id, "CYNOSURE_CLIENT_SECRET": credential.secret}
    command = [sys.executable, "-m", "cynosure", "migrate", pair.name, "--url", pair.near.url, *words]
    return subprocess.run(
        command, env={**os.environ, **secrets}, capture_output=True, text=True, timeout=120, check=False
    )


async def write_until_refused(client: httpx.AsyncClient, path: str, first: int) -> list[int]:
    """Snapshots that were accepted until the table was gone."""
    done: list[int] = []
    for number in range(first, first + 10_000):
        answer = await client.get(path)
        if answer.status_code == 404:
            break
        metadata = answer.json()["metadata"]
        parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
        answer = await client.post(path, json=append(metadata, number, parent))
        if answer.status_code == 404:
            break
        assert answer.status_code in (200, 409), answer.text
        if answer.status_code == 200:
            done.append(number)
        await asyncio.sleep(0.01)
    return done


async def kill_in_the_middle(
    moving: Pair, there: httpx.AsyncClient, paths: list[str], choices: Choices = EVERYTHING
) -> None:
    """Begin, and kill the server when the remote has renamed a table and nobody knows it yet."""
    moving.proxy.add(LoseAnswer(hangs=True), when=is_mutation, times=1)
    first = asyncio.create_task(migration(moving).move(choices))
    async with asyncio.timeout(60):
        # The remote is another process: nothing tells that it renamed the table but looking.
        while all([(await there.get(path)).status_code == 200 for path in paths]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    moving.near.process.kill9()
    assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], httpx.HTTPError)
    moving.proxy.clear()
    await moving.near.process.restart()


async def test_no_commit_is_lost_while_a_server_is_killed_and_writers_go_on(
    pair: Pair, tmp_path: Path
) -> None:
    moving, report = await federate_another(pair), tmp_path / "moved.json"
    async with moving.directly() as there:
        paths = [(await make_table(there))[0] for _ in range(2)]
        async with moving.through() as here:
            for path in paths:
                await load(here, path)
        writers = [
            asyncio.create_task(write_until_refused(there, path, number * 100_000))
            for number, path in enumerate(paths, start=1)
        ]
        await kill_in_the_middle(moving, there, paths)

        ended = await asyncio.to_thread(run_command, moving, "--yes", "--report", str(report))
        assert ended.returncode == 0, ended.stderr

        accepted = await asyncio.gather(*writers)
        async with moving.through() as here:
            for path, known in zip(paths, accepted, strict=True):
                found = await load(here, path)
                assert {each["snapshot-id"] for each in found.get("snapshots", ())} == set(known)
                assert (await there.get(path)).status_code == 404
                parent = found.get("refs", {}).get("main", {}).get("snapshot-id")
                ours = await here.post(path, json=append(found, 17, parent))
                assert ours.status_code == 200, ours.text
                tables = await there.get(path.rpartition("/")[0])
                assert tables.json()["identifiers"] == []
    lines = json.loads(report.read_text())
    assert {each["outcome"] for each in lines if each["type"] == "table"} == {"released"}
    assert len(report.read_text().splitlines()) == len(lines) + 2


async def test_a_dry_run_and_giving_it_up_leave_everything_as_it_was(pair: Pair) -> None:
    moving = await federate_another(pair)
    async with moving.directly() as there, moving.through() as here:
        path, metadata = await make_table(there)

        shown = await asyncio.to_thread(run_command, moving, "--dry-run", "--json")
        assert shown.returncode == 0, shown.stderr
        told = json.loads(shown.stdout)
        assert told["phase"] == "none"
        assert sorted((each["type"], each["outcome"]) for each in told["objects"]) == [
            ("namespace", "ready"),
            ("table", "ready"),
        ]
        assert await load(there, path) == metadata

        async with moving.near.client() as http:
            step = f"{MANAGEMENT}/cynosure/catalogs/{moving.name}/migration"
            namespace = path.split("/")[1]
            for body in ({"step": "begin"}, {"step": "take", "type": "table", "namespace": [namespace]}):
                assert (await http.post(step, json=body)).status_code == 200
        assert (await there.get(path)).status_code == 404
        refused = await here.post(path, json=append(metadata, 17))
        assert refused.status_code == 503, refused.text
        assert (await load(here, path))["table-uuid"] == metadata["table-uuid"]

        given_up = await asyncio.to_thread(run_command, moving, "--cancel")
        assert given_up.returncode == 0, given_up.stderr
        assert (await load(there, path))["table-uuid"] == metadata["table-uuid"]
        assert (await here.post(path, json=append(metadata, 17))).status_code == 200


async def test_tables_of_another_server_go_into_a_catalog_of_ours_and_the_rest_stays(pair: Pair) -> None:
    moving, ours = await federate_another(pair), f"ours{uuid.uuid4().hex[:8]}"
    await pair.near.create_catalog(ours)
    address = f"{pair.near.url}/api/catalog/v1/{ours}/"
    async with moving.directly() as there:
        paths = [(await make_table(there))[0] for _ in range(2)]
        stays, metadata = await make_table(there)
        names = [tuple(path.split("/")[1::2]) for path in paths]
        writers = [
            asyncio.create_task(write_until_refused(there, path, number * 100_000))
            for number, path in enumerate(paths, start=1)
        ]
        await kill_in_the_middle(moving, there, paths, Choices(into=ours, tables=tuple(names)))

        chosen = [word for name in names for word in ("--table", ".".join(name))]
        ended = await asyncio.to_thread(run_command, moving, "--yes", "--into", ours, *chosen)
        assert ended.returncode == 0, ended.stderr
        assert f"{ours} has them now" in ended.stderr
        again = await asyncio.to_thread(run_command, moving, "--yes", "--into", ours, *chosen)
        assert again.returncode == 0, again.stderr
        assert "nothing was left to do" in again.stderr

        accepted = await asyncio.gather(*writers)
        async with make_client(pair.near.login, base_url=address) as here, moving.through() as through:
            for path, known in zip(paths, accepted, strict=True):
                found = await load(here, path)
                assert {each["snapshot-id"] for each in found.get("snapshots", ())} == set(known)
                parent = found.get("refs", {}).get("main", {}).get("snapshot-id")
                written = await here.post(path, json=append(found, 17, parent))
                assert written.status_code == 200, written.text
                for other in (there, through):
                    assert (await other.get(path)).status_code == 404
            # At its remote a table may come to be in the same place: it is not shown.
            namespace = paths[0].rpartition("/")[0]
            body = {"name": "again", "schema": SCHEMA, "location": found["location"]}
            refused = await through.post(paths[1].rpartition("/")[0], json=body)
            assert refused.status_code in (400, 403), refused.text
            assert (await through.get(namespace)).json()["identifiers"] == []
            written = await through.post(stays, json=append(metadata, 18))
            assert written.status_code == 200, written.text
            assert (await load(there, stays))["current-snapshot-id"] == 18
