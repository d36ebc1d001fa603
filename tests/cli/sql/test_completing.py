"""What tab proposes, by what stands before the cursor."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from cynosure.cli.sql_repl.completing import SqlCompleter
from cynosure.client.query import Column, Page, QuerySession
from cynosure.common.errors import NotFound

pytestmark = pytest.mark.anyio


class Lake:
    """A catalog with two tables, and a gateway that knows a view besides."""

    gateway_url = ""

    def __init__(self) -> None:
        self.query = self
        self.asked: list[str] = []

    async def list_catalogs(self) -> list[str]:
        return ["main"]

    def catalog(self, name: str) -> "Lake":
        return self

    async def list_namespaces(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [] if namespace else [("shop",)]

    async def list_tables(self, namespace: tuple[str, ...]) -> list[Any]:
        return [SimpleNamespace(name="orders"), SimpleNamespace(name="odd name")]

    async def list_views(self, namespace: tuple[str, ...]) -> list[Any]:
        return [SimpleNamespace(name="over")]

    async def load_table(self, namespace: tuple[str, ...], name: str) -> Any:
        if name != "orders":
            raise NotFound("There is no such table")
        fields = [{"name": "id"}, {"name": "region"}]
        return {"metadata": {"current-schema-id": 0, "schemas": [{"schema-id": 0, "fields": fields}]}}

    async def submit(self, sql: str, session: QuerySession, *, wait_s: float) -> Any:
        self.asked.append(sql)
        return SimpleNamespace(results="1")

    async def fetch(self, results: str, *, wait_s: float) -> Page:
        return Page([Column("col_name", "string")], [["seen"]], None)


def make_completer(lake: Lake) -> SqlCompleter:
    return SqlCompleter(lake, lambda: QuerySession("main", ("shop",)))  # type: ignore[arg-type]


async def proposals(text: str, lake: Lake | None = None) -> list[str]:
    return await propose(make_completer(lake or Lake()), text)


async def propose(completer: SqlCompleter, text: str) -> list[str]:
    found = completer.get_completions_async(Document(text), CompleteEvent(completion_requested=True))
    return [each.text async for each in found]


async def test_a_statement_begins_with_a_keyword_of_several_words() -> None:
    assert await proposals("SHOW TA") == ["SHOW TABLES", "SHOW TABLES IN"]
    assert await proposals("SELECT 1; expl") == ["EXPLAIN", "EXPLAIN EXTENDED"]


async def test_behind_from_there_are_names_only() -> None:
    assert await proposals("SELECT * FROM sh") == ["shop"]
    assert await proposals("SELECT * FROM shop.o") == ["shop.orders", "shop.`odd name`", "shop.over"]
    assert await proposals("DESCRIBE EXTENDED or") == ["orders"]
    assert await proposals("SELECT * FROM system.runtime.w") == ["system.runtime.workers"]


async def test_columns_are_those_of_the_tables_named_also_by_alias() -> None:
    assert "region" in await proposals("SELECT * FROM orders o WHERE re")
    assert await proposals("SELECT * FROM orders AS o WHERE o.re") == ["o.region"]
    assert await proposals("SELECT * FROM shop.orders WHERE orders.i") == ["orders.id"]
    assert await proposals("SELECT * FROM orders o WHERE x.re") == []


async def test_columns_of_what_is_no_table_of_the_catalog_are_asked_of_the_gateway() -> None:
    lake = Lake()

    assert await proposals("SELECT * FROM over v WHERE v.s", lake) == ["v.seen"]
    assert lake.asked == ["SHOW COLUMNS IN over"]


async def test_whoever_types_on_while_a_name_is_looked_up_is_told_it_the_next_time() -> None:
    lake, is_asked = Lake(), asyncio.Event()
    list_tables = lake.list_tables

    async def hang(namespace: tuple[str, ...]) -> list[Any]:
        lake.list_tables = list_tables  # type: ignore[method-assign]
        is_asked.set()
        await asyncio.Event().wait()
        return []

    lake.list_tables = hang  # type: ignore[method-assign]
    completer = make_completer(lake)
    looking = asyncio.create_task(propose(completer, "SELECT * FROM shop.o"))
    await is_asked.wait()
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking

    assert "shop.orders" in await propose(completer, "SELECT * FROM shop.or")
