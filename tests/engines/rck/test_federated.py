"""Iceberg's compatibility kit on a federated catalog whose remote is Iceberg's own REST server: a part of it.

All of it, with what fails on the remote itself too: `./dev rck --federated --strict`. What the kit does not
ask: registrations that replace, and which files a purge leaves.
"""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from tests.engines.rck.federated import FederatedTarget, serve_federated
from tests.engines.rck.kit import run_kit

pytestmark = pytest.mark.timeout(600)

CHOSEN = (
    "testCompleteCreateTable",
    "testCompleteCreateTransaction",
    "testCreateOrReplaceTransactionConcurrentCreate",
    "testConcurrentReplaceTransactionSchemaConflict",
    "testUpdateTableSpecConflict",
    "testAppend",
    "testDropTableWithPurge",
    "testLoadTableWithMissingMetadataFile",
    "testRegisterTable",
    "testRenameTable",
    "dropAfterRenameDoesntCorruptTable",
    "testListTables",
    "testUpdateAndSetNamespaceProperties",
    "testDropNonEmptyNamespace",
    "completeCreateView",
    "registerView",
    "replaceViewVersionConflict",
    "renameViewUsingDifferentNamespace",
    "listViewsAndTables",
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FederatedTarget]:
    with serve_federated(tmp_path_factory.mktemp("federated")) as target:
        yield target


def test_a_part_of_the_kit_passes_as_on_the_remote_itself(target: FederatedTarget) -> None:
    catalog = target.to_rest()
    # A `#` is before the name of a test.
    results = list(run_kit(catalog.uri, catalog.properties, only=f"(?<=#)(?:{'|'.join(CHOSEN)})$"))

    assert {each.test for each in results} == set(CHOSEN)
    assert {each.name: each.trace for each in results if each.outcome != "passed"} == {}


ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def namespace(target: FederatedTarget) -> str:
    name = f"n{uuid.uuid4().hex[:8]}"
    open_near(target).create_namespace(name)
    return name


def open_near(target: FederatedTarget) -> Catalog:
    rest = target.catalog.to_rest()
    return load_catalog("near", type="rest", uri=rest.uri, **rest.properties)


def open_far(target: FederatedTarget) -> Catalog:
    return load_catalog("far", type="rest", uri=target.remote)


def send(target: FederatedTarget, method: str, path: str, key: str = "", **more: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        async with target.catalog.client() as http:
            return await http.request(method, f"{target.catalog.url}/{path}", headers=headers, **more)

    return asyncio.run(ask())


def files_in(target: FederatedTarget, namespace: str) -> set[Path]:
    return {each for each in (target.warehouse / namespace).rglob("*") if each.is_file()}


def test_a_purge_leaves_no_file_and_is_asked_for_once(target: FederatedTarget, namespace: str) -> None:
    near, far = open_near(target), open_far(target)
    for name in ("purged", "kept"):
        near.create_table((namespace, name), ROWS.schema).append(ROWS)
    near.rename_table((namespace, "purged"), (namespace, "renamed"))
    kept = {each for each in files_in(target, namespace) if "kept" in each.parts}
    path, key = f"namespaces/{namespace}/tables/renamed?purgeRequested=true", str(uuid.uuid4())
    assert files_in(target, namespace) > kept > set()

    answers = [
        send(target, "DELETE", path, key),
        send(target, "DELETE", path, key),
        send(target, "DELETE", path),
    ]

    assert [each.status_code for each in answers] == [204, 204, 404]
    assert files_in(target, namespace) == kept
    assert [each.list_tables(namespace) for each in (near, far)] == [[(namespace, "kept")]] * 2


def test_what_the_remote_does_not_do_is_said_so_and_changes_nothing(
    target: FederatedTarget, namespace: str
) -> None:
    """It does not register over a table that is there."""
    near, far = open_near(target), open_far(target)
    table = near.create_table((namespace, "t"), ROWS.schema)
    first = table.metadata_location
    table.append(ROWS)
    body = {"name": "t", "metadata-location": first, "overwrite": True}

    refused = send(target, "POST", f"namespaces/{namespace}/register", str(uuid.uuid4()), json=body)
    taken = send(target, "POST", f"namespaces/{namespace}/register", json={**body, "overwrite": False})

    assert (refused.status_code, taken.status_code) == (501, 409), refused.text
    for each in (near, far):
        assert each.load_table((namespace, "t")).scan().to_arrow().num_rows == 2


def test_a_table_that_takes_the_name_of_a_renamed_one_has_a_place_of_its_own(
    target: FederatedTarget, namespace: str
) -> None:
    near, far = open_near(target), open_far(target)
    near.create_table((namespace, "t"), ROWS.schema).append(ROWS)
    near.rename_table((namespace, "t"), (namespace, "old"))

    near.create_table((namespace, "t"), ROWS.schema).append(ROWS)

    places = {far.load_table((namespace, name)).location() for name in ("t", "old")}
    assert len(places) == 2
    assert [near.load_table((namespace, name)).scan().to_arrow().num_rows for name in ("t", "old")] == [2, 2]
    assert send(target, "DELETE", f"namespaces/{namespace}/tables/old?purgeRequested=true").status_code == 204
    assert near.load_table((namespace, "t")).scan().to_arrow().num_rows == 2
