"""Properties that are not for users to set, and secrets that are not for clients to read."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.load_config import load_config
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.catalog.properties import is_secret
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.iceberg.views import ViewUpdate
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.tables import T, change, decoded, make, properties, updates
from tests.catalog.world import NS, VERSION, Lake, V, open_lake

RESERVED = [
    "polaris.x",
    "POLARIS.x",
    " polaris.x",
    "polaris.config.unheard-of",
    "polaris.config.allow.table.location.overlap",
    "cynosure.x",
    "Cynosure.Retention.Enabled",
    "cynosure.retention.enabled.x",
]
ALLOWED = [
    "cynosure.retention.enabled",
    "polaris.config.drop-with-purge.enabled",
    "polaris.config.allow.overlapping.table.location",
    "polaris.config.enable.credential.vending",
    "enable.credential.vending",
    "polarisation",
    "x.polaris.y",
]


def view_updates(*wanted: dict) -> list[ViewUpdate]:
    return msgspec.json.decode(msgspec.json.encode(wanted), type=list[ViewUpdate])


def removal(name: str) -> dict:
    return {"action": "remove-properties", "removals": [name]}


Act = Callable[[Lake, str], Awaitable[object]]
ACTS: dict[str, Act] = {
    "create table": lambda w, name: create_table(
        w.catalog, ROOT, CreateTable(NS, "new", SCHEMA, properties={name: "v"})
    ),
    "commit": lambda w, name: commit_table(
        w.catalog, ROOT, TableChange(T, [], updates(properties(**{name: "v"})))
    ),
    "commit removal": lambda w, name: commit_table(
        w.catalog, ROOT, TableChange(T, [], updates(removal(name)))
    ),
    "transaction": lambda w, name: commit_transaction(
        w.catalog, ROOT, [TableChange(T, [], updates(properties(**{name: "v"})))]
    ),
    "create namespace": lambda w, name: create_namespace(w.catalog, ROOT, ("new",), {name: "v"}),
    "update namespace": lambda w, name: update_namespace_properties(
        w.catalog, ROOT, NS, PropertiesUpdate(updates={name: "v"})
    ),
    "remove from namespace": lambda w, name: update_namespace_properties(
        w.catalog, ROOT, NS, PropertiesUpdate(removals=(name,))
    ),
    "create view": lambda w, name: create_view(
        w.catalog, ROOT, CreateView(V._replace(name="new"), SCHEMA, VERSION, properties={name: "v"})
    ),
    "replace view": lambda w, name: replace_view(
        w.catalog, ROOT, ViewChange(V, [], view_updates(properties(**{name: "v"})))
    ),
    "remove from view": lambda w, name: replace_view(
        w.catalog, ROOT, ViewChange(V, [], view_updates(removal(name)))
    ),
    "create catalog": lambda w, name: create_catalog(w.directory, ROOT, new_catalog(w.folder, {name: "v"})),
    "update catalog": lambda w, name: update_catalog(
        w.directory, ROOT, "lake", CatalogUpdate(set_properties={name: "v"})
    ),
    "remove from catalog": lambda w, name: update_catalog(
        w.directory, ROOT, "lake", CatalogUpdate(remove_properties=(name,))
    ),
}


def new_catalog(folder: Path, wanted: dict[str, str]) -> NewCatalog:
    location = f"file://{folder / 'new'}"
    storage = FileStorage(allowed_locations=(location,))
    return NewCatalog(name="new", base_location=location, storage=storage, properties=wanted)


@pytest.mark.anyio
@pytest.mark.parametrize("act", list(ACTS.values()), ids=list(ACTS))
async def test_reserved_properties_are_not_for_users(act: Act, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        before = await lake.heads()
        for name in RESERVED:
            with pytest.raises(BadInput, match="reserved"):
                await act(lake, name)
        assert await lake.heads() == before

        await act(lake, ALLOWED[0])


@pytest.mark.anyio
@pytest.mark.parametrize("name", ALLOWED)
async def test_other_properties_are(name: str, catalog: OpenCatalog) -> None:
    await make(catalog)

    await change(catalog, properties(**{name: "v"}))

    assert decoded(await load_table(catalog, ROOT, T))["properties"][name] == "v"


@pytest.mark.anyio
async def test_a_registered_file_brings_nothing_of_ours(catalog: OpenCatalog) -> None:
    await make(catalog)
    answer = await unregister_table(catalog, ROOT, T)
    assert answer.metadata_location is not None
    metadata = decoded(answer)

    for name, is_refused in (("cynosure.trusted", True), ("polaris.inert", False)):
        metadata["properties"] = {name: "true"}
        path = Path(answer.metadata_location.removeprefix("file://"))
        path.write_bytes(msgspec.json.encode(metadata))
        if is_refused:
            with pytest.raises(BadInput, match="reserved"):
                await register_table(catalog, ROOT, T, answer.metadata_location)
        else:
            await register_table(catalog, ROOT, T, answer.metadata_location)


# --- secrets ------------------------------------------------------------------------------------------------

SECRETS = {
    "client-secret": "x",
    "credential": "id:secret",
    "s3.secret-access-key": "x",
    "s3.access-key-id": "x",
    "s3.session-token": "x",
    "gcs.oauth2.token": "x",
    "adls.account-key.name": "x",
    "adls.sas": "x",
    "PASSWORD": "x",
    "private_key": "x",
    "uri": "https://user:word@host/",
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", SECRETS)
async def test_a_secret_is_not_taken_as_a_property_of_a_catalog(name: str, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        before = await lake.heads()
        for act in (
            create_catalog(lake.directory, ROOT, new_catalog(tmp_path, {name: SECRETS[name]})),
            update_catalog(lake.directory, ROOT, "lake", CatalogUpdate(set_properties={name: SECRETS[name]})),
        ):
            with pytest.raises(BadInput) as refused:
                await act
            assert SECRETS[name] not in str(refused.value) or len(SECRETS[name]) == 1
        assert await lake.heads() == before


@pytest.mark.parametrize(
    "name", ["s3.region", "s3.endpoint", "default-base-location", "token-refresh-enabled", "owner"]
)
def test_what_is_no_secret_is_not_taken_for_one(name: str) -> None:
    assert not is_secret(name, "https://host:8080/path@2")


@pytest.mark.anyio
async def test_clients_are_told_neither_secrets_nor_what_is_the_servers(
    directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a catalog that a version without these rules has made."""
    told = {"owner": "ann", "s3.region": "eu"}
    kept = {"cynosure.retention.enabled": "true", "polaris.config.drop-with-purge.enabled": "true"}
    for check in ("check_reserved", "check_no_secrets"):
        monkeypatch.setattr(f"cynosure.catalog.operations.create_catalog.{check}", lambda _: None)
    await create_catalog(directory, ROOT, new_catalog(tmp_path / "files", {**told, **kept, **SECRETS}))

    assert await load_config(directory, ROOT, "new") == told
