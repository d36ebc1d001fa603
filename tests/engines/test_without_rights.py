"""PyIceberg as somebody who may do nothing, or little: refused at every step, and nothing is left behind."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.io.pyarrow import PyArrowFileIO

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog
from cynosure.testing.login import Credential
from tests.engines.pyiceberg_client import SCHEMA, connect, read, rows
from tests.names import unique


@pytest.fixture(scope="module")
def served(make_served_catalog: Callable[[], ServedCatalog]) -> ServedCatalog:
    return make_served_catalog()


@pytest.fixture(scope="module")
def root(served: ServedCatalog) -> Iterator[Catalog]:
    """Its namespace `ns` has the table `t` with two rows, and the view `v`."""
    with connect(served.to_rest()) as client:
        client.create_namespace("ns", {"owner": "root"})
        client.create_table("ns.t", SCHEMA).append(rows("Oslo", "Rome"))
        asyncio.run(create_view(served))
        yield client


async def create_view(served: ServedCatalog) -> None:
    version = {
        "version-id": 1,
        "timestamp-ms": 1_750_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        "default-namespace": ["ns"],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    body = {"name": "v", "schema": schema, "view-version": version, "properties": {}}
    async with served.client() as http:
        (await http.post(f"{served.url}/namespaces/ns/views", json=body)).raise_for_status()


@pytest.fixture(scope="module")
def make_client(
    root: Catalog, served: ServedCatalog, catalog_server: CatalogServer
) -> Iterator[Callable[..., Catalog]]:
    """Makes clients of principals that have these privileges only."""
    clients: list[Catalog] = []

    def make(*grants: Grant) -> Catalog:
        async def create() -> Credential:
            async with catalog_server.client() as http:
                return await Admin(http).create_user(unique("u"), served.name, *grants)

        clients.append(connect(served.to_rest(asyncio.run(create()))))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def nobody(make_client: Callable[..., Catalog]) -> Catalog:
    return make_client()


OPERATIONS: dict[str, Callable[[Catalog], object]] = {
    "list namespaces": lambda catalog: catalog.list_namespaces(),
    "create namespace": lambda catalog: catalog.create_namespace("mine"),
    "create nested namespace": lambda catalog: catalog.create_namespace("ns.mine"),
    "drop namespace": lambda catalog: catalog.drop_namespace("ns"),
    "load namespace": lambda catalog: catalog.load_namespace_properties("ns"),
    "update namespace": lambda catalog: catalog.update_namespace_properties("ns", updates={"owner": "me"}),
    "list tables": lambda catalog: catalog.list_tables("ns"),
    "list views": lambda catalog: catalog.list_views("ns"),
    "create table": lambda catalog: catalog.create_table("ns.mine", SCHEMA),
    "stage table": lambda catalog: catalog.create_table_transaction("ns.mine", SCHEMA),
    "load table": lambda catalog: catalog.load_table("ns.t"),
    "table exists": lambda catalog: catalog.table_exists("ns.t"),
    "drop table": lambda catalog: catalog.drop_table("ns.t"),
    "purge table": lambda catalog: catalog.purge_table("ns.t"),
    "rename table": lambda catalog: catalog.rename_table("ns.t", "ns.mine"),
    "view exists": lambda catalog: catalog.view_exists("ns.v"),
    "drop view": lambda catalog: catalog.drop_view("ns.v"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_everything_is_refused_to_somebody_without_grants(nobody: Catalog, operation: str):
    with pytest.raises(ForbiddenError):
        OPERATIONS[operation](nobody)


def test_whatever_was_tried_changed_nothing(root: Catalog, nobody: Catalog):
    for operation in OPERATIONS.values():
        with suppress(ForbiddenError):
            operation(nobody)

    assert root.list_namespaces() == [("ns",)]
    assert root.list_namespaces("ns") == []
    assert root.list_tables("ns") == [("ns", "t")]
    assert root.list_views("ns") == [("ns", "v")]
    assert root.load_namespace_properties("ns")["owner"] == "root"
    assert read(root.load_table("ns.t")) == [(1, "Oslo"), (2, "Rome")]


def test_a_reader_reads_and_does_not_write(root: Catalog, make_client: Callable[..., Catalog]):
    reader = make_client(Grant("TABLE_READ_DATA", ("ns",)))

    table = reader.load_table("ns.t")

    assert read(table) == [(1, "Oslo"), (2, "Rome")]
    assert reader.list_tables("ns") == [("ns", "t")]
    with pytest.raises(ForbiddenError, match="TABLE_ADD_SNAPSHOT"):
        table.append(rows("Bonn", first=3))
    with pytest.raises(ForbiddenError, match="TABLE_SET_PROPERTIES"):
        table.transaction().set_properties(mine="1").commit_transaction()
    with pytest.raises(ForbiddenError, match="TABLE_DROP"):
        reader.drop_table("ns.t")
    assert read(root.load_table("ns.t")) == [(1, "Oslo"), (2, "Rome")]
    assert isinstance(table.io, PyArrowFileIO)


def test_a_writer_writes_and_does_not_drop(root: Catalog, make_client: Callable[..., Catalog]):
    name = unique("w")
    root.create_table(f"ns.{name}", SCHEMA).append(rows("Oslo"))
    writer = make_client(Grant("TABLE_WRITE_DATA", ("ns",), name))

    writer.load_table(f"ns.{name}").append(rows("Rome", first=2))

    assert read(root.load_table(f"ns.{name}")) == [(1, "Oslo"), (2, "Rome")]
    for refused in (
        lambda: writer.drop_table(f"ns.{name}"),
        lambda: writer.rename_table(f"ns.{name}", "ns.mine"),
        lambda: writer.load_table("ns.t"),
        lambda: writer.create_table("ns.mine", SCHEMA),
    ):
        with pytest.raises(ForbiddenError):
            refused()
    root.drop_table(f"ns.{name}")
