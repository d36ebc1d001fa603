"""Catalogs on real object stores, and what an attacker does with what it is given."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import boto3
import httpx
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.s3_servers import S3Server

VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SIGNED = {"X-Iceberg-Access-Delegation": "remote-signing"}
DENIED = frozenset({"AccessDenied", "403", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "Forbidden"})


@dataclass(frozen=True)
class Lake:
    """One catalog whose files are in one store."""

    server: CatalogServer
    store: S3Server
    name: str
    base: str
    """Where its tables are: `s3://bucket/…`."""

    @property
    def url(self) -> str:
        return f"/api/catalog/v1/{quote(self.name, safe='')}"

    def path(self, table: str, namespace: str = "ns") -> str:
        return f"{self.url}/namespaces/{quote(namespace, safe='')}/tables/{quote(table, safe='')}"

    def as_owner(self) -> BaseClient:
        """The store with the key that only the server should have."""
        return connect(self.store, self.store.access_key_id, self.store.secret_access_key)


def connect(store: S3Server, access_key_id: str, secret: str, token: str | None = None) -> BaseClient:
    """A client of the store with exactly this key."""
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(
            s3={"addressing_style": "path"},
            retries={"max_attempts": 1},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def connect_with(store: S3Server, config: Mapping[str, str]) -> BaseClient:
    """A client of the store with what a catalog vended."""
    return connect(
        store,
        config["s3.access-key-id"],
        _remember(config["s3.secret-access-key"]),
        _remember(config["s3.session-token"]),
    )


def _remember(secret: str) -> str:
    """Have a secret searched for in all that is written; by the parts of it that can be."""
    for part in re.findall(r"[A-Za-z0-9]{24,}", secret):
        KNOWN.add(part, kind="a vended secret")
    return secret


def key_of(location: str) -> tuple[str, str]:
    """Bucket and key of a location."""
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, key


def error_code(action: Any) -> str:
    """What the store answers: empty when it did as it was told."""
    try:
        action()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def assert_denied(action: Any) -> None:
    """The store refuses, for want of rights and for nothing else."""
    code = error_code(action)
    assert code in DENIED, f"answered {code or 'success'}"


async def make_table(
    http: httpx.AsyncClient,
    lake: Lake,
    name: str,
    *,
    namespace: str = "ns",
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> httpx.Response:
    """Ask for a table."""
    return await http.post(
        f"{lake.url}/namespaces/{quote(namespace, safe='')}/tables",
        json={"name": name, "schema": SCHEMA, **fields},
        headers=headers,
    )


async def vend(http: httpx.AsyncClient, lake: Lake, table: str, namespace: str = "ns") -> Mapping[str, str]:
    """The credentials that a principal is given for a table."""
    answer = await http.get(lake.path(table, namespace), headers=VENDED)
    assert answer.status_code == 200, answer.text
    [*credentials] = answer.json()["storage-credentials"]
    config: Mapping[str, str] = credentials[0]["config"]
    return config
