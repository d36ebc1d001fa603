"""A Hive Metastore, a Glue and a SQL catalog, each as ours sees it and as PyIceberg does."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import asyncpg
import boto3
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table
from msgspec.structs import replace
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.sql import SqlCatalog

from cynosure.catalog.connection import Connection, ConnectionSecrets, Implicit, Password, SigV4
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remotes.glue import open_glue
from cynosure.federation.remotes.hive import open_hive
from cynosure.federation.remotes.sql import open_sql
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Request, Respond, client_sends, executes
from cynosure.testing.harness.ports import ReservedPort
from cynosure.testing.pointer_kit import PointerStage
from cynosure.testing.s3_servers import S3Server

HASTY = FederationSettings(
    allow_implicit=True, timeout=timedelta(seconds=20), connect_timeout=timedelta(seconds=5)
)
Proxies = Callable[[str], Awaitable[FaultProxy]]


class Corner(Protocol):
    """One remote."""

    connection: Connection
    secrets: ConnectionSecrets

    def open(self, uri: str | None = None) -> PointerCatalog:
        """A client of ours, at another address if one is given."""
        ...

    def connect(self, server: S3Server, warehouse: str) -> Catalog:
        """PyIceberg's, with files in this store."""
        ...

    async def make_foreign(self, table: Identifier) -> None:
        """A table that is not of Iceberg's."""
        ...

    def swaps(self) -> Callable[[Request], bool]:
        """Tells the request that swaps a pointer."""
        ...

    def creates(self) -> Callable[[Request], bool]:
        """Tells the request that creates a table."""
        ...

    def refuse_late_swaps(self, proxy: FaultProxy) -> None:
        """Have the proxy refuse what the real remote refuses, if the one behind it does not."""
        ...


def files_in(server: S3Server) -> dict[str, str]:
    """Properties with which PyIceberg reaches a store."""
    return {
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": server.access_key_id,
        "s3.secret-access-key": server.secret_access_key,
        "s3.region": server.region,
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    }


class HiveCorner:
    def __init__(self, url: str) -> None:
        self.connection = Connection(type="HIVE", uri=url, authentication=Implicit())
        self.secrets = ConnectionSecrets()

    def open(self, uri: str | None = None) -> PointerCatalog:
        connection = self.connection if uri is None else replace(self.connection, uri=uri)
        return open_hive(connection, self.secrets, HASTY, SystemClock(), "near")

    def connect(self, server: S3Server, warehouse: str) -> HiveCatalog:
        # The place of a new database is the metastore's own, so tables have theirs named.
        return HiveCatalog("far", uri=self.connection.uri, warehouse=warehouse, **files_in(server))

    async def make_foreign(self, table: Identifier) -> None:
        await asyncio.to_thread(self.make_plain, table)

    def make_plain(self, table: Identifier, **parameters: str) -> None:
        """A table of Hive's own, made by somebody else's client."""
        storage = StorageDescriptor(
            cols=[FieldSchema("id", "bigint", "")],
            location="s3://bucket/plain",
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
        )
        record = Table(
            tableName=table.name,
            dbName=table.namespace[0],
            owner="somebody",
            createTime=0,
            lastAccessTime=0,
            sd=storage,
            partitionKeys=[],
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )
        with HiveCatalog("far", uri=self.connection.uri)._client as client:
            client.create_table(record)

    def swaps(self) -> Callable[[Request], bool]:
        return client_sends(b"alter_table_with_environment_context")

    def creates(self) -> Callable[[Request], bool]:
        return client_sends(b"create_table")

    def refuse_late_swaps(self, proxy: FaultProxy) -> None:
        """It does so itself."""


class GlueCorner:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.region = parse_qs(parts.query)["region"][0]
        self.url = f"http://{parts.hostname}:{parts.port}"
        self.key, self.secret = parts.username or "", parts.password or ""
        self.connection = Connection(
            type="GLUE", uri=self.url, authentication=SigV4(signing_region=self.region)
        )
        self.secrets = ConnectionSecrets(
            access_key_id=Secret(self.key), secret_access_key=Secret(self.secret)
        )

    def open(self, uri: str | None = None) -> PointerCatalog:
        connection = self.connection if uri is None else replace(self.connection, uri=uri)
        return open_glue(connection, self.secrets, HASTY, SystemClock(), "near")

    def client(self) -> Any:
        """Amazon's own client."""
        return boto3.client(
            "glue",
            endpoint_url=self.url,
            region_name=self.region,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
        )

    def connect(self, server: S3Server, warehouse: str) -> GlueCatalog:
        return GlueCatalog("far", client=self.client(), warehouse=warehouse, **files_in(server))

    async def make_foreign(self, table: Identifier) -> None:
        wanted = {"Name": table.name, "Parameters": {"classification": "parquet"}}
        await asyncio.to_thread(
            self.client().create_table, DatabaseName=table.namespace[0], TableInput=wanted
        )

    def swaps(self) -> Callable[[Request], bool]:
        return client_sends(b"AWSGlue.UpdateTable")

    def creates(self) -> Callable[[Request], bool]:
        return client_sends(b"AWSGlue.CreateTable")

    def refuse_late_swaps(self, proxy: FaultProxy) -> None:
        """As Glue's documentation says, and moto does not: a version is updated once."""
        updated: set[tuple[str, str, str]] = set()

        def is_late(request: Request) -> bool:
            if not self.swaps()(request):
                return False
            asked = json.loads(request.data.partition(b"\r\n\r\n")[2])
            version = asked["DatabaseName"], asked["TableInput"]["Name"], asked["VersionId"]
            is_known = version in updated
            updated.add(version)
            return is_known

        body = json.dumps({"__type": "VersionMismatchException"}).encode()
        proxy.add(Respond(400, body), when=is_late, times=None)


class SqlCorner:
    def __init__(self, url: str, name: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.name = name
        self.connection = Connection(
            type="SQL",
            uri=f"postgresql://{parts.hostname}:{parts.port}{parts.path}",
            authentication=Password(user=parts.username or ""),
            remote_name=name,
        )
        self.secrets = ConnectionSecrets(password=Secret(parts.password or ""))

    def open(self, uri: str | None = None) -> PointerCatalog:
        connection = self.connection if uri is None else replace(self.connection, uri=uri)
        return open_sql(connection, self.secrets, HASTY, SystemClock(), "near")

    def connect(self, server: S3Server, warehouse: str) -> SqlCatalog:
        url = self.url.replace("postgresql://", "postgresql+psycopg2://")
        return SqlCatalog(self.name, uri=url, warehouse=warehouse, **files_in(server))

    async def execute(self, statement: str, *values: object) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(statement, *values)
        finally:
            await connection.close()

    async def make_foreign(self, table: Identifier) -> None:
        """A view, whose pointer is in the same table."""
        await self.execute(
            "INSERT INTO iceberg_tables VALUES ($1, $2, $3, $4, NULL, 'VIEW')",
            self.name,
            ".".join(table.namespace),
            table.name,
            "s3://bucket/view.metadata.json",
        )

    def swaps(self) -> Callable[[Request], bool]:
        return executes("UPDATE iceberg_tables")

    def creates(self) -> Callable[[Request], bool]:
        return executes("INTO iceberg_tables")

    def refuse_late_swaps(self, proxy: FaultProxy) -> None:
        """It does so itself."""


@asynccontextmanager
async def staged(corner: Corner, proxies: Proxies) -> AsyncIterator[PointerStage]:
    """What the kit of pointers needs of a remote."""
    pointers = corner.open()

    async def open_losing() -> PointerCatalog:
        proxy = await proxies(corner.connection.uri)
        proxy.lose_answer_after(corner.swaps())
        return corner.open(proxy.url)

    port = ReservedPort()
    nowhere = urlsplit(corner.connection.uri)._replace(netloc=f"127.0.0.1:{port.number}").geturl()
    yield PointerStage(pointers, corner.make_foreign, open_losing, lambda: corner.open(nowhere))
    await pointers.close()
    port.release()


async def make_database(postgres_url: str) -> str:
    """A database with the tables that PyIceberg makes; its URL."""
    name = f"far_{uuid.uuid4().hex[:12]}"
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return urlsplit(postgres_url)._replace(path=f"/{name}").geturl()


async def drop_database(postgres_url: str, url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"DROP DATABASE {urlsplit(url).path.strip('/')} WITH (FORCE)")
    await connection.close()
