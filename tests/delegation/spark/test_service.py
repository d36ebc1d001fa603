"""From an order at the catalog to Spark and back, each a process of its own, as users run them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.client.appends import append
from cynosure.client.profiles import Profile
from cynosure.testing.catalog_server import run_cynosure
from cynosure.testing.delegation_server import PREFIX, start_pair
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import find_s3_servers
from tests.delegation.spark.conftest import spark_settings
from tests.engines.poison import POISON

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
APPENDS = 5


@pytest.mark.s3
@pytest.mark.anyio
async def test_a_table_is_compacted_by_order(processes: Processes, tmp_path: Path):
    """With the rights of the service's own principal and nobody else's keys."""
    spark = spark_settings().service.spark
    store = find_s3_servers()["minio"]
    location = store.fresh_location("delegation")
    pair = await start_pair(processes, tmp_path)
    lake = await pair.catalog.create_catalog_on(store, location=location)
    await pair.init()
    service = await pair.start_service(
        env={
            **POISON,
            f"{PREFIX}SERVICE__SPARK__MASTER": spark.master,
            **({f"{PREFIX}SERVICE__SPARK__JARS": str(spark.jars)} if spark.jars else {}),
        }
    )
    root = pair.catalog.credential
    profile = Profile(url=pair.catalog.url, client_id=root.client_id, client_secret=root.secret)
    async with lake.client() as http:
        await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        await http.post(f"{lake.url}/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA})
    for number in range(APPENDS):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        append("ns.t", rows, catalog=lake.name, server=profile)

    told = await run_cynosure(
        *("maintenance", "run", lake.name, "--namespace", "ns", "--table", "t"),
        *("--operation", "DATA_COMPACTION", "--wait", "--json"),
        *("--url", pair.catalog.url, "--client-id", root.client_id),
        env={"CYNOSURE_CLIENT_SECRET": root.secret},
    )

    assert json.loads(told)["status"] == "SUCCESS", service.log_tail()
    assert root.secret not in service.log()
    async with lake.client() as http:
        url = f"{lake.root}/cynosure/v1/{lake.name}/namespaces/ns/tables/t/statistics"
        counted = (await http.get(url)).json()
    assert (counted["data"]["files"], counted["data"]["records"]) == (1, APPENDS)
    store.delete_below(location)
