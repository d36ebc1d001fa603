"""Bad input over HTTP: refused with the place and what to do, at once, and the gateway goes on."""

import asyncio
from typing import Any

import pytest

from cynosure.testing.query_server import API, run_to_end
from tests.query.redteam.test_errors import IS_SOAK
from tests.query.redteam.vault import FILTERS, Vault

pytestmark = pytest.mark.anyio

WRONG = {
    "SELEC 1": (1, 1),
    "SELECT 1 FROM": (1, 10),
    "SELECT\n  1,\n  FROM lake.ns.scalar": (3, 3),
    "SELECT id FROM lake.ns.scalar HAVNG id = 1": (1, 31),
    "SELECT (1": (1, 9),
    "SELECT 'open": (1, 8),
    "SELECT id FROM lake.ns.scalar a, lake.ns.scalar b": (1, 8),
    "SELECT nothing FROM lake.ns.scalar": (1, 8),
    "SELECT no_such_function(id) FROM lake.ns.scalar": (1, 8),
}
DEEP = {
    "parentheses": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 10_000 + "lake.ns.scalar" + ")" * 10_000,
    "not": "SELECT " + "NOT " * 10_000 + "true",
    "minus": "SELECT " + "- " * 10_000 + "1",
    "functions": "SELECT " + "abs(" * 10_000 + "1" + ")" * 10_000,
    "arrays": "SELECT " + "array(" * 10_000 + "1" + ")" * 10_000,
    "case": "SELECT " + "CASE WHEN true THEN " * 10_000 + "1" + " END" * 10_000,
    "and": "SELECT 1 WHERE " + " AND ".join(["true"] * 100_000),
    "union": " UNION ALL ".join(["SELECT 1"] * 10_000),
    "joins": "SELECT 1 FROM lake.ns.scalar" + " CROSS JOIN lake.ns.scalar" * 10_000,
    "types": "SELECT CAST(NULL AS " + "ARRAY<" * 10_000 + "INT" + ">" * 10_000 + ")",
    "comments": "/*" * 10_000 + " SELECT 1 " + "*/" * 10_000,
    "dots": "SELECT " + ".".join(["a"] * 10_000) + " FROM lake.ns.scalar",
    "brackets": "SELECT items" + "[0]" * 10_000 + " FROM lake.ns.scalar",
    "large": "SELECT '" + "x" * 2**21 + "'",
}
INSIDE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "parentheses": ("SELECT " + "(" * 40 + "id" + ")" * 40 + " FROM lake.ns.scalar WHERE id = 1", [(1,)]),
    "operators": ("SELECT " + " + ".join(["id"] * 499) + " FROM lake.ns.scalar WHERE id = 1", [(499,)]),
    "joins": (
        "SELECT count(*) FROM lake.ns.scalar" + " CROSS JOIN (SELECT 1 AS one)" * 100 + " WHERE id = 1",
        [(1,)],
    ),
}
"""As deep, as long and as wide as they may be, and what they answer."""
UNREAD = ("time", "timestamp_ns", "timestamptz_ns", "variant", "geometry(srid:4326)", "geography(srid:4326)")
BODIES: list[tuple[Any, str]] = [
    (b"{", ""),
    (b"\xff\xfe", ""),
    (b"[]", ""),
    (b'{"sql": 1}', "sql"),
    (b"{}", "body"),
    (b'{"sql": ""}', "sql"),
    (b'{"sql": "SELECT 1", "colour": "red"}', "body"),
    (b'{"sql": "SELECT 1", "wait": -1}', "wait"),
    (b'{"sql": "SELECT 1", "timeout": "soon"}', "timeout"),
    (b'{"sql": "SELECT 1", "statement-id": "mine"}', "statement-id"),
    (b'{"sql": "SELECT 1", "namespace": "a..b"}', "namespace"),
    (b'{"sql": "SELECT :a", "parameters": {"a b": 1}}', "parameters"),
    (b'{"sql": "SELECT :a", "parameters": 7}', "parameters"),
    (b'{"sql": "SELECT :a", "parameters": {"a": {"type": "SECRET", "value": 1}}}', "sql"),
    (b'{"sql": "SELECT :a", "parameters": {"a": {"type": "DATE", "value": "soon"}}}', "sql"),
    (b'{"sql": "SELECT :a", "parameters": {"b": 1}}', "sql"),
    (b'{"sql": "SELECT ?, ?", "parameters": [1]}', "sql"),
    (b'{"sql": "SELECT 1", "parameters": [1]}', "sql"),
    (b"[" * 100_000, ""),
]


async def test_errors_of_syntax_and_names_say_where_and_what_to_do(vault: Vault) -> None:
    for sql, place in WRONG.items():
        failed = await vault.scene.fails(vault.mia, sql)
        assert failed["code"] == 400, (sql, failed)
        assert failed["fix"], (sql, failed)
        assert (failed["details"].get("line"), failed["details"].get("column")) == place, (sql, failed)


@pytest.mark.parametrize("kind", DEEP)
async def test_monstrous_statements_are_refused_while_others_are_answered(vault: Vault, kind: str) -> None:
    scene = vault.scene
    failing = asyncio.create_task(scene.fails(vault.mia, DEEP[kind]))
    while not failing.done():
        async with scene.client(vault.mia) as http:
            assert (await http.get("/health/live")).status_code == 200
        await asyncio.wait([failing], timeout=0.2)
    failed = await failing
    assert failed["code"] in (400, 413), failed
    assert failed["fix"], failed
    assert await scene.rows(vault.mia, "SELECT 1") == [(1,)]


async def test_statements_just_inside_of_the_limits_run_on_spark(spark: Vault) -> None:
    is_native = spark.scene.directory.name == "native"
    for kind, (sql, rows) in list(INSIDE.items())[0 if IS_SOAK else is_native :: 1 if IS_SOAK else 2]:
        assert await spark.scene.rows(spark.mia, sql) == rows, kind
    assert await spark.scene.rows(spark.mia, "SELECT 1") == [(1,)]


async def test_statements_just_inside_of_the_limits_run_in_process_or_are_for_spark(vault: Vault) -> None:
    async with vault.scene.client(vault.mia) as http:
        for kind, (sql, rows) in INSIDE.items():
            found = await run_to_end(http, sql)
            if isinstance(found, dict):
                assert found["message"] == "No engine of this gateway runs this statement", (kind, found)
            else:
                assert [tuple(each.values()) for each in found.to_pylist()] == rows, kind
    assert await vault.scene.rows(vault.mia, "SELECT 1") == [(1,)]


async def test_columns_of_a_type_that_nobody_reads_are_refused_by_name_where_they_are_asked_for(
    vault: Vault,
) -> None:
    scene = vault.scene
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
    }
    schema["fields"] += [
        {"id": at, "name": f"c{at}", "type": type_, "required": False} for at, type_ in enumerate(UNREAD, 2)
    ]
    body = {"name": "untold", "schema": schema, "properties": {"format-version": "3"}}
    async with scene.lake.client() as http:
        made = await http.post(f"{scene.lake.url}/namespaces/ns/tables", json=body)
    assert made.is_success, made.text
    for at, type_ in enumerate(UNREAD, 2):
        for sql in (
            f"SELECT c{at} FROM lake.ns.untold",
            f"SELECT id FROM lake.ns.untold WHERE c{at} IS NULL",
        ):
            failed = await scene.fails(vault.mia, sql)
            assert failed["code"] == 400, (type_, failed)
            assert failed["fix"], (type_, failed)
            assert f"c{at}" in str(failed), (type_, failed)
    assert await scene.rows(vault.mia, "SELECT id FROM lake.ns.untold") == []


async def test_bodies_that_are_no_statements_are_refused_by_their_field(vault: Vault) -> None:
    async with vault.scene.client(vault.mia) as http:
        for body, field in BODIES:
            answer = await http.post(
                f"{API}/statements", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 400, (body[:60], answer.text)
            error = answer.json()["error"]
            assert error.get("fix"), (body[:60], error)
            if field:
                told = f"{error.get('details', {}).get('field', '')} {error['message']}"
                assert field in told, (body[:60], error)


async def test_numbers_as_large_as_decimals_can_be_are_parameters(vault: Vault) -> None:
    large = {"type": "DECIMAL", "value": 10**37 + 1}
    assert await vault.scene.rows(vault.mia, "SELECT ? = ?", parameters=[large, large]) == [(True,)]


@pytest.mark.parametrize("kind", FILTERS)
async def test_parameters_are_values_and_never_text_of_a_statement(vault: Vault, kind: str) -> None:
    await check_parameters(vault, kind)


async def test_parameters_are_values_and_never_text_of_a_statement_on_spark(spark: Vault) -> None:
    is_native = spark.scene.directory.name == "native"
    for kind in FILTERS if IS_SOAK else list(FILTERS)[is_native::4]:
        await check_parameters(spark, kind)


async def check_parameters(vault: Vault, kind: str) -> None:
    scene = vault.scene
    sql = f"SELECT count(*) FROM lake.ns.{kind} WHERE num = :num"
    assert await scene.rows(vault.mia, sql, parameters={"num": "' OR '1' = '1"}) == [(0,)]
    assert await scene.rows(vault.mia, sql, parameters={"num": "hidden-value-7f3a"}) == [(0,)]
    assert await scene.rows(vault.auditor, sql, parameters={"num": "hidden-value-7f3a"}) == [(1,)]
    for wrong in ("SELECT * FROM :num", f"SELECT count(*) AS :num FROM lake.ns.{kind}"):
        failed = await scene.fails(vault.mia, wrong, parameters={"num": "lake.ns.plain"})
        assert failed["code"] == 400
