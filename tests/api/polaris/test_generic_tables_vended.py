"""A generic table on real S3 servers: its credentials reach its base location and nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from cynosure.testing.admin import Grant
from cynosure.testing.s3_servers import S3Server
from tests.api.world import BASE, World, open_world

pytestmark = pytest.mark.anyio

MANY = f"{BASE}/api/catalog/polaris/v1/lake/namespaces/ns/generic-tables"
VENDED = {"Polaris-Generic-Table-Access-Delegation": "vended-credentials"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


def open_store(server: S3Server, access: dict[str, Any]) -> S3Store:
    """The server's bucket as a client that was given this access reaches it."""
    config = access["config"]
    return S3Store(
        server.bucket,
        endpoint=config["s3.endpoint"],
        region=config["client.region"],
        access_key_id=config["s3.access-key-id"],
        secret_access_key=config["s3.secret-access-key"],
        session_token=config["s3.session-token"],
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


async def test_credentials_reach_the_base_location_only_and_write_only_where_one_may(
    world: World, sts_server: S3Server
) -> None:
    location = sts_server.fresh_location("generic")
    place = location.removeprefix(f"s3://{sts_server.bucket}/")
    async with await world.login(world.root) as root:
        admin = world.admin(root)
        await admin.create_catalog("lake", location, storage=sts_server.storage())
        await admin.grant_content("lake")
        await root.post(f"{BASE}/api/catalog/v1/lake/namespaces", json={"namespace": ["ns"]})
        wanted = {"name": "events", "format": "delta", "base-location": f"{location}/events"}
        made = await root.post(MANY, json=wanted, headers=VENDED)
        reader = await admin.create_user("ann", "lake", Grant("TABLE_READ_DATA", ("ns",), table="events"))
    assert made.status_code == 200, made.text
    [access] = made.json()["storage-access-configs"]
    assert access["prefix"] == f"{location}/events"
    store = open_store(sts_server, access)

    await obstore.put_async(store, f"{place}/events/part-0.parquet", b"rows")
    for outside in (f"{place}/events2/x", f"{place}/x", "x"):
        with pytest.raises(Exception, match=r"(?i)denied|403|permission"):
            await obstore.put_async(store, outside, b"stolen")

    async with await world.login(reader) as ann:
        loaded = await ann.get(f"{MANY}/events", headers=VENDED)
    read_only = open_store(sts_server, loaded.json()["storage-access-configs"][0])
    found = await obstore.get_async(read_only, f"{place}/events/part-0.parquet")
    assert bytes(await found.bytes_async()) == b"rows"
    with pytest.raises(Exception, match=r"(?i)denied|403|permission"):
        await obstore.put_async(read_only, f"{place}/events/part-1.parquet", b"more")


async def test_a_store_without_token_service_fails_the_request(
    world: World, plain_s3_server: S3Server
) -> None:
    location = plain_s3_server.fresh_location("generic")
    async with await world.login(world.root) as root:
        admin = world.admin(root)
        await admin.create_catalog("lake", location, storage=plain_s3_server.storage())
        await admin.grant_content("lake")
        await root.post(f"{BASE}/api/catalog/v1/lake/namespaces", json={"namespace": ["ns"]})
        wanted = {"name": "events", "format": "delta", "base-location": f"{location}/events"}

        refused = await root.post(MANY, json=wanted, headers=VENDED)
        made = await root.post(MANY, json=wanted)

    assert (refused.status_code, made.status_code) == (400, 200)
    assert "token service" in refused.json()["error"]["message"]
