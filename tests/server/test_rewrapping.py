"""`catalogs.rewrap`: keys and secrets of catalogs, under another master key."""

import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cynosure.catalog.connection import Bearer, Connection, ConnectionSecrets, open_secrets
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.common.errors import CorruptObject, Misconfigured
from cynosure.common.key_file import add_primary_key, open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.server.catalog_commands import RewrapParams, Rewrapped, catalog_commands
from cynosure.storage.config import (
    AzureKeys,
    AzureStorage,
    FileStorage,
    GcsKeys,
    GcsStorage,
    S3Keys,
    S3Storage,
    open_azure_keys,
    open_gcs_keys,
    open_s3_keys,
)
from cynosure.testing.small_access import People
from cynosure.testing.small_catalog import ROOT, directory_on

pytestmark = pytest.mark.anyio

S3 = S3Keys("AKIA", Secret("hunter2"))
GCS = GcsKeys("us@project.example.com", "1", Secret("hunter2"))
AZURE = AzureKeys("us", Secret("hunter2"))
ACCOUNT = "abfss://lake@acct.dfs.core.windows.net"
REMOTE = ConnectionSecrets(bearer_token=Secret("hunter2"))
WANTED = [
    NewCatalog(
        name="s3",
        base_location="s3://bucket/a",
        storage=S3Storage(allowed_locations=("s3://bucket/a",)),
        storage_keys=S3,
        kind="EXTERNAL",
        connection=Connection(
            type="ICEBERG_REST", uri="https://catalog.example.com", authentication=Bearer()
        ),
        connection_secrets=REMOTE,
    ),
    NewCatalog(
        name="gcs",
        base_location="gs://bucket/a",
        storage=GcsStorage(allowed_locations=("gs://bucket/a",)),
        storage_keys=GCS,
    ),
    NewCatalog(
        name="azure",
        base_location=f"{ACCOUNT}/a",
        storage=AzureStorage(allowed_locations=(f"{ACCOUNT}/a",), tenant_id="11111111-2222"),
        storage_keys=AZURE,
    ),
]


@pytest.fixture
async def persistence(anyio_backend: str, tmp_path: Path):
    async with open_persistence("memory:", initialise=True) as opened:
        async with directory_on(opened, tmp_path) as directory:
            await People(directory).root()
            local = f"file://{tmp_path}/files"
            plain = NewCatalog(name="files", base_location=local, storage=FileStorage((local,)))
            for wanted in (*WANTED, plain):
                await create_catalog(directory, ROOT, wanted)
        yield opened


async def rewrap(persistence, folder: Path, *, dry_run: bool = False) -> Rewrapped:
    """As a server that was started just now."""

    @asynccontextmanager
    async def open_directory(initialise: bool):
        async with directory_on(persistence, folder) as directory:
            yield directory

    (command,) = [each for each in catalog_commands(open_directory) if each.name == "catalogs.rewrap"]
    told = []
    done = await command.run(RewrapParams(dry_run), told.append)
    assert len(told) == 4
    return done


async def open_all(persistence, folder: Path) -> None:
    keyring = open_keyring(KeyringSettings(), folder)
    async with directory_on(persistence, folder) as directory:
        for name, opening, keys in (
            ("s3", open_s3_keys, S3),
            ("gcs", open_gcs_keys, GCS),
            ("azure", open_azure_keys, AZURE),
        ):
            entity = await load_catalog(directory, ROOT, name)
            owner = (DEFAULT_REALM, entity.id)
            assert opening(entity.storage.sealed_keys, keyring, owner) == keys
            if entity.connection is not None:
                assert open_secrets(entity.connection.sealed_secrets, keyring, owner) == REMOTE


def remove_key(folder: Path, key: str) -> None:
    path = folder / "keyring.json"
    content = json.loads(path.read_text())
    del content["keys"][key]
    path.write_text(json.dumps(content))


async def test_everything_opens_when_the_old_master_key_is_gone(persistence, tmp_path: Path) -> None:
    add_primary_key(tmp_path / "keyring.json")

    rehearsed = await rewrap(persistence, tmp_path, dry_run=True)
    done = await rewrap(persistence, tmp_path)
    again = await rewrap(persistence, tmp_path)
    remove_key(tmp_path, "k1")

    expected = [f"{DEFAULT_REALM}/{name}" for name in ("azure", "gcs", "s3")]
    assert sorted(rehearsed.catalogs) == sorted(done.catalogs) == expected
    assert (again.catalogs, again.looked_at) == ([], 4)
    await open_all(persistence, tmp_path)


async def test_without_it_nothing_would(persistence, tmp_path: Path) -> None:
    add_primary_key(tmp_path / "keyring.json")
    await rewrap(persistence, tmp_path, dry_run=True)
    await open_all(persistence, tmp_path)
    remove_key(tmp_path, "k1")

    with pytest.raises((CorruptObject, Misconfigured)):
        await open_all(persistence, tmp_path)
