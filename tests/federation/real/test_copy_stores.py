"""A copy out of a real metastore, between real stores: with vended credentials, and with signed requests."""

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.federation.real.copied import (
    ROWS,
    assert_apart,
    assert_same,
    migrate,
    open_catalog,
    outcomes,
    rows_of,
)
from tests.federation.real.test_chain import federate
from tests.federation.remotes.pointers.corners import HiveCorner

pytestmark = [pytest.mark.hive, pytest.mark.s3]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory = tmp_path_factory.mktemp("stores")
    env = {"CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory, env=env))


def test_a_table_of_a_metastore_is_copied_from_store_to_store(
    server: CatalogServer, hive_url: str, minio: S3Server
) -> None:
    place, namespace = minio.fresh_location("copied"), f"copied_{uuid.uuid4().hex[:8]}"
    signing = find_s3_servers()["no-sts"]
    hive = {
        "connectionType": "HIVE",
        "uri": hive_url,
        "authenticationParameters": {"authenticationType": "IMPLICIT"},
    }

    async def make_catalogs() -> None:
        await federate(server, "metastore", place, minio.storage(), hive)
        await server.create_catalog_on(minio, "vended")
        await server.create_catalog_on(signing, "signed")
        await server.create_catalog_on(minio, "back")

    asyncio.run(make_catalogs())
    theirs = HiveCorner(hive_url).connect(minio, place)
    theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
    source = theirs.create_table(
        f"{namespace}.t", ROWS.schema, location=f"{place}/t", properties={"write.data.path": f"{place}/data"}
    )
    try:
        for _ in range(3):
            source.append(ROWS)
        rows = rows_of(source)
        chosen = ("--namespace", namespace, "--yes")

        for first, second in (("metastore", "vended"), ("metastore", "signed"), ("signed", "back")):
            done = migrate(server, first, "--into", second, "--copy", *chosen)
            assert done["code"] == 0, done["err"] + str(done["objects"])
            assert outcomes(done) == {namespace: "copied", f"{namespace}.t": "copied"}

        vended = open_catalog(server, "vended").load_table(f"{namespace}.t")
        assert_same(source, vended)
        assert_apart(vended, place)
        assert "write.data.path" not in vended.properties
        assert rows_of(vended) == rows
        back = open_catalog(server, "back").load_table(f"{namespace}.t")
        assert_apart(back, place)
        assert rows_of(back) == rows
    finally:
        theirs.drop_table(f"{namespace}.t")
        theirs.drop_namespace(namespace)
        minio.delete_below(place)
