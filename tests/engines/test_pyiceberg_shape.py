"""Our client changes the shape of a table that PyIceberg writes and reads."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pyarrow as pa
import pytest

from cynosure.client.api import ApiClient
from cynosure.client.http import HttpClient
from cynosure.client.shape import ShapeApi
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists
from cynosure.common.secrets import Secret
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.shaping.sort_order import NewSortField
from cynosure.testing.catalog_server import ServedCatalog
from tests.engines.pyiceberg_client import ARROW, DAY_US, SCHEMA, connect, read, rows

T = TypeVar("T")
NS = ("ns",)


def as_client(catalog: ServedCatalog, work: Callable[[ShapeApi], Awaitable[T]]) -> T:
    """Do something with our client, as root."""

    async def connect_and_work() -> T:
        clock, base = SystemClock(), catalog.root.removesuffix("/api/catalog")
        async with HttpClient(base, clock=clock, rng=random.Random(1)) as http:
            login = catalog.login.credential
            tokens = TokenSource(
                http, ClientCredentials(login.client_id, Secret(login.secret)), clock, headers={}
            )
            return await work(ShapeApi(ApiClient(http, tokens=tokens), catalog.name))

    return asyncio.run(connect_and_work())


def test_pyiceberg_goes_on_with_a_table_whose_shape_was_changed_meanwhile(
    make_served_catalog: Callable[[], ServedCatalog],
) -> None:
    served = make_served_catalog()
    with connect(served.to_rest()) as catalog:
        catalog.create_namespace("ns")
        stale = catalog.create_table("ns.t", SCHEMA)
        stale.append(rows("Oslo"))

        async def change(shape: ShapeApi) -> None:
            columns = [[NewColumn(name=f"c{number}", type="string")] for number in range(8)]
            await asyncio.gather(*(shape.add_columns(NS, "t", each) for each in columns))
            await shape.set_partitioning(NS, "t", [NewPartitionField("at", "day")])
            await shape.set_sort_order(NS, "t", [NewSortField("id", direction="desc")])

        as_client(served, change)
        table = catalog.load_table("ns.t")
        new = pa.table(
            {"id": [2], "city": ["Rome"], "at": [2 * DAY_US], "c3": ["new"]},
            schema=ARROW.append(pa.field("c3", pa.string())),
        )
        table.append(new)

        assert sorted(field.field_id for field in table.schema().fields) == list(range(1, 12))
        assert [(field.name, field.field_id) for field in table.spec().fields] == [("at_day", 1000)]
        assert [field.source_id for field in table.sort_order().fields] == [1]
        assert read(table) == [(1, "Oslo"), (2, "Rome")]
        assert table.scan(row_filter="c3 = 'new'").to_arrow()["id"].to_pylist() == [2]
        with pytest.raises(AlreadyExists):
            as_client(served, lambda shape: shape.add_columns(NS, "t", [NewColumn(name="c3", type="int")]))
