"""What only a SQL catalog does: its tables, nested namespaces, a database's own errors."""

import asyncio
import random
import ssl
import tracemalloc
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace

from cynosure.catalog.connection import ConnectionSecrets
from cynosure.catalog.errors import InvalidName, NoSuchNamespace, NoSuchTable, TableExists
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.errors import OutcomeUnknown
from cynosure.common.secrets import Secret
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remotes.extras import MissingExtra
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.remotes.sql import open_sql
from cynosure.federation.settings import FederationSettings
from cynosure.testing.pointer_kit import COLUMNS, place
from cynosure.testing.small_catalog import open_directory_in
from tests.federation.federated import make_federated
from tests.federation.remotes.pointers.corners import HASTY, SqlCorner, drop_database, make_database

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

OLD_TABLES = """
    CREATE TABLE iceberg_tables (
        catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
        table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),
        previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name));
    CREATE TABLE iceberg_namespace_properties (
        catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
        property_key VARCHAR(255), property_value VARCHAR(1000),
        PRIMARY KEY (catalog_name, namespace, property_key))
"""


@pytest.fixture
def empty(postgres_url: str) -> Iterator[SqlCorner]:
    """A database without any tables."""
    url = asyncio.run(make_database(postgres_url))
    yield SqlCorner(url, "far")
    asyncio.run(drop_database(postgres_url, url))


@pytest.fixture
async def pointers(sql: SqlCorner) -> AsyncIterator[PointerCatalog]:
    opened = sql.open()
    yield opened
    await opened.close()


def fresh() -> str:
    return f"sql_{uuid.uuid4().hex[:12]}"


async def test_a_database_without_the_tables_is_refused_and_gets_none(empty: SqlCorner):
    opened = empty.open()

    for attempt in (
        opened.check(),
        opened.find(Identifier(("ns",), "orders")),
        opened.create_namespace(("ns",), {}),
        opened.create(Identifier(("ns",), "orders"), place("first"), COLUMNS),
    ):
        with pytest.raises(RemoteMisbehaved, match="cannot be used"):
            await attempt
    await opened.close()

    connection = await asyncpg.connect(empty.url)
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    assert tables == []


async def test_tables_of_an_older_release_are_used_as_they_are(empty: SqlCorner):
    await empty.execute(OLD_TABLES)
    opened, table, second = empty.open(), Identifier(("ns",), "orders"), place("second")
    await opened.create_namespace(("ns",), {})

    first = await opened.create(table, place("first"), COLUMNS)
    await opened.swap(table, first, second, COLUMNS)

    assert (await opened.find(table)).metadata_location == second.metadata_location
    assert (await opened.list_tables(("ns",), token=None, size=10)).names == ["orders"]
    await opened.close()


async def test_the_pointer_before_is_noted(pointers: PointerCatalog, sql: SqlCorner):
    table = Identifier((fresh(),), "orders")
    await pointers.create_namespace(table.namespace, {})
    first, second = await pointers.create(table, place("first"), COLUMNS), place("second")
    await pointers.swap(table, first, second, COLUMNS)

    connection = await asyncpg.connect(sql.url)
    row = await connection.fetchrow(
        "SELECT * FROM iceberg_tables WHERE table_namespace = $1", table.namespace[0]
    )
    await connection.close()
    assert row["previous_metadata_location"] == first.metadata_location
    assert row["metadata_location"] == second.metadata_location
    assert row["iceberg_type"] == "TABLE"


async def test_catalogs_of_one_database_are_apart(pointers: PointerCatalog, sql: SqlCorner):
    table = Identifier((fresh(),), "orders")
    await pointers.create_namespace(table.namespace, {})
    await pointers.create(table, place("first"), COLUMNS)
    connection = replace(sql.connection, remote_name="another")
    other = open_sql(connection, sql.secrets, HASTY, SystemClock(), "near")

    with pytest.raises(NoSuchTable):
        await other.find(table)
    with pytest.raises(NoSuchTable):
        await other.drop(table)
    with pytest.raises(NoSuchNamespace):
        await other.load_namespace(table.namespace)
    await other.close()


async def test_a_level_with_a_dot_reaches_nothing_below_another(pointers: PointerCatalog):
    outer = fresh()
    inner = (outer, "inner")
    table, dotted = Identifier(inner, "orders"), (f"{outer}.inner",)
    await pointers.create_namespace((outer,), {})
    await pointers.create_namespace(inner, {"owner": "inner"})
    first = await pointers.create(table, place("first"), COLUMNS)
    other = Identifier(dotted, "orders")

    for attempt in (
        pointers.find(other),
        pointers.drop(other),
        pointers.swap(other, first, place("second"), COLUMNS),
        pointers.rename(other, Identifier((outer,), "orders")),
    ):
        with pytest.raises(NoSuchTable):
            await attempt
    for refused in (
        pointers.load_namespace(dotted),
        pointers.drop_namespace(dotted),
        pointers.list_tables(dotted, token=None, size=10),
        pointers.list_namespaces(dotted, token=None, size=10),
        pointers.update_namespace(dotted, removals=["owner"], updates={}),
        pointers.rename(table, Identifier(dotted, "other")),
    ):
        with pytest.raises(NoSuchNamespace):
            await refused
    with pytest.raises(InvalidName):
        await pointers.create_namespace((f"{fresh()}.inner",), {})

    assert (await pointers.find(table)).metadata_location == first.metadata_location
    assert (await pointers.load_namespace(inner))["owner"] == "inner"


async def test_a_namespace_of_similar_name_is_not_below(pointers: PointerCatalog):
    outer = fresh()
    await pointers.create_namespace((outer,), {})
    await pointers.create_namespace((f"{outer}_longer", "inner"), {})
    await pointers.create_namespace((outer.replace("_", "x"), "other"), {})

    assert (await pointers.list_namespaces((outer,), token=None, size=10)).names == []
    await pointers.drop_namespace((outer,))


async def test_a_pointer_that_is_too_long_is_refused(pointers: PointerCatalog):
    table = Identifier((fresh(),), "orders")
    await pointers.create_namespace(table.namespace, {})

    with pytest.raises(RemoteRefused):
        await pointers.create(table, place("x" * 1_000), COLUMNS)
    with pytest.raises(NoSuchTable):
        await pointers.find(table)


async def test_a_wrong_password_is_refused_and_not_told(sql: SqlCorner):
    secrets = ConnectionSecrets(password=Secret("hunter2"))
    opened = open_sql(sql.connection, secrets, HASTY, SystemClock(), "near")

    with pytest.raises(RemoteRefused) as raised:
        await opened.check()
    with pytest.raises(RemoteRefused):
        await opened.create_namespace((fresh(),), {})

    assert "hunter2" not in str(raised.value)
    await opened.close()


async def test_nothing_of_the_environment_is_consulted(
    sql: SqlCorner, monkeypatch: pytest.MonkeyPatch, tmp_path
):
    (tmp_path / ".pgpass").write_text("*:*:*:*:poison")
    (tmp_path / ".pgpass").chmod(0o600)
    poison = {
        "HOME": str(tmp_path),
        "PGHOST": "192.0.2.1",
        "PGPORT": "1",
        "PGUSER": "poison",
        "PGPASSWORD": "poison",
        "PGDATABASE": "poison",
        "PGSSLMODE": "verify-full",
        "PGSSLNEGOTIATION": "direct",
        "PGTARGETSESSIONATTRS": "standby",
        "PGSERVICE": "poison",
        "PGSERVICEFILE": str(tmp_path / "none"),
        "PGGSSLIB": "poison",
        "PGPASSFILE": str(tmp_path / ".pgpass"),
    }
    for name, value in poison.items():
        monkeypatch.setenv(name, value)
    opened = sql.open()
    await opened.check()
    await opened.close()

    with pytest.raises(RemoteUnavailable):
        open_sql(sql.connection, ConnectionSecrets(), HASTY, SystemClock(), "near")


def test_without_the_driver_the_extra_is_named(sql: SqlCorner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cynosure.federation.remotes.extras.find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=r"cynosure\[postgres\]"):
        sql.open()


async def test_a_database_elsewhere_is_asked_over_tls_or_not_at_all(sql: SqlCorner):
    # This machine, by a name that does not say so; its server has no TLS.
    connection = replace(sql.connection, uri=sql.connection.uri.replace("127.0.0.1", "127.1"))
    strict = open_sql(connection, sql.secrets, HASTY, SystemClock(), "near")
    lax = open_sql(connection, sql.secrets, replace(HASTY, allow_insecure=True), SystemClock(), "near")

    with pytest.raises(RemoteUnavailable):
        await strict.check()
    await lax.check()

    await strict.close()
    await lax.close()


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_a_database_with_tls_is_asked_over_tls_also_where_others_need_none(
    sql: SqlCorner, monkeypatch: pytest.MonkeyPatch, is_allowed: bool
):
    opened: list[object] = []

    async def connect(**options: object) -> object:
        opened.append(options["ssl"])
        raise asyncpg.InvalidPasswordError("the server has TLS and says this behind it")

    monkeypatch.setattr("cynosure.federation.remotes.sql.database.asyncpg.connect", connect)
    connection = replace(sql.connection, uri=sql.connection.uri.replace("127.0.0.1", "127.1"))
    remote = open_sql(
        connection, sql.secrets, replace(HASTY, allow_insecure=is_allowed), SystemClock(), "near"
    )
    # The pool goes its own way to the server, which has none: so it must have asked for TLS.
    with pytest.raises(RemoteUnavailable):
        await remote.check()
    await remote.close()
    assert all(isinstance(each, ssl.SSLContext) for each in opened)
    assert len(opened) == is_allowed


@pytest.mark.parametrize(
    "flood",
    [
        "SELECT 'far' AS catalog_name, 'ns' AS namespace, 'k' AS property_key, "
        "repeat('x', 30000000) AS property_value",
        "SELECT 'far' AS catalog_name, 'ns' AS namespace, 'k' || n AS property_key, 'v' AS property_value "
        "FROM generate_series(1, 1000000) AS n",
    ],
    ids=["one large text", "a million rows"],
)
async def test_what_a_database_sends_is_bounded(empty: SqlCorner, flood: str):
    await empty.execute(OLD_TABLES)
    await empty.execute(
        f"DROP TABLE iceberg_namespace_properties; CREATE VIEW iceberg_namespace_properties AS {flood}"
    )
    opened = empty.open()
    tracemalloc.start()
    try:
        with pytest.raises(RemoteMisbehaved):
            await opened.load_namespace(("ns",))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await opened.close()
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("code", "breaker"),
    [
        ("40P01", "closed"),
        ("55P03", "closed"),
        ("57014", "closed"),
        ("XX000", "closed"),
        ("53300", "open"),
        ("57P03", "open"),
    ],
)
async def test_who_makes_a_database_stumble_does_not_close_the_catalog_to_others(
    empty: SqlCorner, tmp_path: Path, code: str, breaker: str
):
    await empty.execute(OLD_TABLES)
    await empty.execute(f"""
        CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'stumbled' USING ERRCODE = '{code}'; END $$
    """)
    await empty.execute(
        "CREATE TRIGGER stumbles BEFORE INSERT ON iceberg_namespace_properties EXECUTE FUNCTION stumble()"
    )
    opened = empty.open()
    async with open_directory_in(tmp_path) as directory:
        remote = PointerRemote(opened, await make_federated(directory, tmp_path), name="near")
        settings = FederationSettings(break_after=2, retries=0)
        guarded = GuardedRemote("near", lambda: remote, settings, SystemClock(), random.Random(1))
        for _ in range(2):
            with pytest.raises((RemoteUnavailable, OutcomeUnknown)):
                await guarded.create_namespace(("ns",), {})

    assert guarded.health().breaker == breaker
    await opened.close()


async def test_a_table_is_not_renamed_over_a_view(pointers: PointerCatalog, sql: SqlCorner):
    table = Identifier((fresh(),), "orders")
    view = Identifier(table.namespace, "report")
    await pointers.create_namespace(table.namespace, {})
    await pointers.create(table, place("first"), COLUMNS)
    await sql.make_foreign(view)

    with pytest.raises(TableExists):
        await pointers.rename(table, view)
