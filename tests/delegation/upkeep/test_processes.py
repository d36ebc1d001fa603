"""A task ordered with `cynosure maintenance run` goes from a catalog to its delegation service and back."""

import json
import os
from pathlib import Path

import pytest

from cynosure.testing.catalog_server import run_cynosure
from cynosure.testing.delegation_server import Pair, start_pair
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import VARIABLES, parse_s3_server

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
POLICY = {"name": "p", "type": "system.orphan-file-removal", "content": '{"enable":true}'}


async def call(pair: Pair, *words: str) -> str:
    root = pair.catalog.credential
    return await run_cynosure(
        *words,
        *("--url", pair.catalog.url, "--client-id", root.client_id),
        env={"CYNOSURE_CLIENT_SECRET": root.secret},
    )


async def test_a_task_is_ordered_followed_and_remembered(processes: Processes, tmp_path: Path) -> None:
    pair = await start_pair(processes, tmp_path)
    lake = await pair.catalog.create_catalog_on(parse_s3_server("minio", os.environ[VARIABLES["minio"]]))
    await pair.init()
    await pair.start_service()
    polaris, ours = (
        lake.url.replace("/api/catalog/v1", f"/api/catalog/{kind}/v1") for kind in ("polaris", "cynosure")
    )
    async with lake.client() as http:
        await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        await http.post(f"{lake.url}/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA})
        made = await http.post(f"{polaris}/namespaces/ns/policies", json=POLICY)
        assert made.status_code == 200, made.text
        target = {"target": {"type": "namespace", "path": ["ns"]}}
        attached = await http.put(f"{polaris}/namespaces/ns/policies/p/mappings", json=target)
        assert attached.status_code == 204, attached.text

        (entry,) = (await http.get(f"{ours}/maintenance/plan")).json()["plan"]
        ordered = await call(
            pair,
            *("maintenance", "run", lake.name, "--namespace", "ns", "--table", "t", "--wait", "--json"),
            *("--operation", "TABLE_PURGE", "--property", "dryRun=true"),
        )
        tables = (await http.get(f"{ours}/maintenance/runs")).json()["tables"]

    assert entry["decision"] in ("run", "running"), "the scheduler may have come first"
    ended = json.loads(ordered)
    assert ended["status"] == "SUCCESS"
    assert ended["execution_result"]["details"]["dry_run"] is True
    purge = next(each for each in tables if each["operation"] == "TABLE_PURGE")
    assert [(run["task-id"], run["outcome"]) for run in purge["runs"]] == [(ended["task_id"], "SUCCESS")]
    assert purge["runs"][0]["ordered-by"] == "root"
