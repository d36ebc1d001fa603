"""Vended secrets are in the answer that gives them and nowhere else. Promise I57."""

import json
import secrets
import sqlite3
from pathlib import Path

import pytest

from cynosure.testing.catalog_server import start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import WITH_STS, find_s3_servers
from tests.robustness.attacks.storage.lakes import VENDED, Lake, make_table

pytestmark = pytest.mark.anyio

SECRET = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")


@pytest.mark.parametrize("kind", WITH_STS)
async def test_what_was_vended_is_written_nowhere(tmp_path: Path, kind: str) -> None:
    store = find_s3_servers()[kind]
    with Processes(tmp_path) as processes:
        server = await start_catalog_server(processes, tmp_path)
        base = store.fresh_location()
        await server.create_catalog("lake", location=base, storage=store.storage())
        lake = Lake(server, store, "lake", base)
        async with server.client() as http:
            await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
            name = f"t{secrets.token_hex(4)}"
            giving = [
                await make_table(http, lake, name, headers=VENDED),
                await http.get(lake.path(name), headers=VENDED),
                await http.get(f"{lake.path(name)}/credentials"),
                await make_table(http, lake, f"{name}s", headers=VENDED, **{"stage-create": True}),
            ]
            assert all(each.headers["cache-control"] == "no-store" for each in giving)
            made, loaded, *_ = [each.json() for each in giving]
            plain = (await http.get(lake.path(name))).text
            update = {"action": "set-properties", "updates": {"k": "v"}}
            committed = await http.post(lake.path(name), json={"requirements": [], "updates": [update]})
            others = [
                plain,
                committed.text,
                (await http.get("/metrics")).text,
                (await http.get("/api/management/v1/events")).text,
                (await http.get(f"{lake.url.replace('/v1/', '/cynosure/v1/')}/changes")).text,
            ]
    given = {
        credential["config"][key]
        for answer in (made, loaded)
        for credential in answer["storage-credentials"]
        for key in SECRET
    } | {store.secret_access_key}

    database = sqlite3.connect(f"file:{next((tmp_path / 'data').glob('*.db'))}?mode=ro", uri=True)
    rows = "".join(database.iterdump())
    database.close()
    written = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    for secret in given:
        for text in (*others, rows, written, json.dumps(str(given - {secret}))):
            assert secret not in text
