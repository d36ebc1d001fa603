"""Federated catalogs as things: their connections, and the secrets in them (I116)."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.auth.require import AccessDenied
from cynosure.catalog.check_connection import ConnectionRules
from cynosure.catalog.connection import (
    Bearer,
    Connection,
    ConnectionSecrets,
    Implicit,
    OAuth,
    Password,
    open_secrets,
)
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.errors import OwnedElsewhere
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.notify import Notification, notify
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.objects import open_envelope
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import ObjKey
from cynosure.storage.config import FileStorage
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.small_access import P, People, on_catalog
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog, open_directory_in

pytestmark = pytest.mark.anyio

FIRST = KNOWN.add("FirstSecretOfAConnection0000", kind="the secret of a connection")
SECOND = KNOWN.add("SecondSecretOfAConnection111", kind="the secret of a connection")
REST = Connection(
    type="ICEBERG_REST",
    uri="https://catalog.example.com/api",
    authentication=OAuth(client_id="us"),
    remote_name="sales",
)
SECRETS = ConnectionSecrets(client_secret=Secret(FIRST))


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path, url=f"sqlite:{tmp_path}/store.db") as opened:
        yield opened


async def make_federated(
    directory: Directory,
    folder: Path,
    name: str = "theirs",
    connection: Connection = REST,
    secrets: ConnectionSecrets | None = SECRETS,
    **properties: str,
) -> CatalogEntity:
    location = f"file://{folder / name}"
    wanted = NewCatalog(
        name=name,
        base_location=location,
        storage=FileStorage(allowed_locations=(location,)),
        kind="EXTERNAL",
        connection=connection,
        connection_secrets=secrets,
        properties=properties,
    )
    return await create_catalog(directory, ROOT, wanted)


def opened_secrets(entity: CatalogEntity, folder: Path, owner: str | None = None) -> ConnectionSecrets:
    assert entity.connection is not None
    keyring = open_keyring(KeyringSettings(), folder)
    return open_secrets(entity.connection.sealed_secrets, keyring, (DEFAULT_REALM, owner or entity.id))


async def test_a_connection_is_kept_with_its_secrets_sealed(directory: Directory, tmp_path: Path) -> None:
    made = await make_federated(directory, tmp_path)

    found = await load_catalog(directory, ROOT, "theirs")
    opened = await directory.open(DEFAULT_REALM, "theirs")

    assert found == made
    assert found.connection is not None
    assert structs.replace(found.connection, sealed_secrets=None) == REST
    assert (opened.is_facade, opened.is_federated) == (True, True)
    assert opened_secrets(found, tmp_path) == SECRETS
    assert FIRST not in repr(found) + repr(SECRETS)


async def test_no_byte_of_the_store_shows_a_secret(tmp_path: Path) -> None:
    async with open_directory_in(tmp_path, url=f"sqlite:{tmp_path}/store.db") as directory:
        await make_federated(directory, tmp_path, owner=(control := "ThisOneIsNoSecretAndIsShown0"))

    assert any(control.encode() in each for each in stored_bytes(tmp_path))
    assert not any(FIRST.encode() in each for each in stored_bytes(tmp_path))


def stored_bytes(folder: Path) -> list[bytes]:
    """All that a store holds: its files, and what is compressed in them."""
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        rows = connection.execute("SELECT realm, catalog, type, id, blob FROM objects").fetchall()
    opened = [open_envelope(ObjKey(*key), blob).payload for *key, blob in rows]
    return [*opened, *(each.read_bytes() for each in folder.glob("store.db*"))]


async def test_sealed_secrets_do_not_open_for_another_catalog(directory: Directory, tmp_path: Path) -> None:
    made = await make_federated(directory, tmp_path)
    other = await make_federated(directory, tmp_path, "other")
    stolen = structs.replace(other, connected_to=made.connected_to)

    with pytest.raises(CorruptObject):
        opened_secrets(stolen, tmp_path)
    assert opened_secrets(made, tmp_path) == SECRETS


async def test_another_replica_opens_them(postgres_schema_url: str, tmp_path: Path) -> None:
    async with open_directory_in(tmp_path, url=postgres_schema_url) as directory:
        await make_federated(directory, tmp_path)

        replica = open_persistence(postgres_schema_url, PersistenceSettings(), initialise=False)
        async with replica as persistence, directory_on(persistence, tmp_path) as beside:
            found = await load_catalog(beside, ROOT, "theirs")

    assert opened_secrets(found, tmp_path) == SECRETS


async def test_only_external_catalogs_have_one(directory: Directory, tmp_path: Path) -> None:
    location = f"file://{tmp_path / 'ours'}"
    wanted = NewCatalog(
        name="ours",
        base_location=location,
        storage=FileStorage(allowed_locations=(location,)),
        connection=REST,
        connection_secrets=SECRETS,
    )

    with pytest.raises(BadInput) as caught:
        await create_catalog(directory, ROOT, wanted)

    assert caught.value.details["field"] == "connectionConfigInfo"
    assert "EXTERNAL" in caught.value.fix


@pytest.mark.parametrize(
    ("connection", "secrets"),
    [
        (REST, None),
        (REST, ConnectionSecrets(bearer_token=Secret(FIRST))),
        (structs.replace(REST, authentication=Implicit()), None),
        (structs.replace(REST, uri="http://catalog.example.com"), SECRETS),
    ],
)
async def test_what_is_refused_leaves_nothing(
    directory: Directory, tmp_path: Path, connection: Connection, secrets: ConnectionSecrets | None
) -> None:
    with pytest.raises(BadInput):
        await make_federated(directory, tmp_path, connection=connection, secrets=secrets)

    await make_federated(directory, tmp_path)


async def test_what_an_operator_allows_is_taken(tmp_path: Path) -> None:
    rules = ConnectionRules(is_implicit_allowed=True, is_insecure_allowed=True)
    hive = Connection(type="HIVE", uri="thrift://hive.example.com:9083", authentication=Implicit())

    async with open_directory_in(tmp_path, connections=rules) as directory:
        made = await make_federated(directory, tmp_path, connection=hive, secrets=None)

    assert made.connection == hive


async def test_new_tables_go_to_one_place(tmp_path: Path) -> None:
    hive = Connection(type="HIVE", uri="thrift://localhost:9083", authentication=Implicit())
    here = structs.replace(hive, warehouse=f"file://{tmp_path}/theirs/")
    elsewhere = structs.replace(hive, warehouse=f"file://{tmp_path}/elsewhere")
    rules = ConnectionRules(is_implicit_allowed=True)

    async with open_directory_in(tmp_path, connections=rules) as directory:
        with pytest.raises(BadInput, match="warehouse"):
            await make_federated(directory, tmp_path, connection=elsewhere, secrets=None)
        await make_federated(directory, tmp_path, connection=here, secrets=None)
        with pytest.raises(BadInput, match="warehouse"):
            await change(directory, elsewhere)


async def change(directory: Directory, connection: Connection, secrets: ConnectionSecrets | None = None):
    update = CatalogUpdate(connection=connection, connection_secrets=secrets)
    return await update_catalog(directory, ROOT, "theirs", update)


async def test_secrets_stay_when_they_are_not_named(directory: Directory, tmp_path: Path) -> None:
    await make_federated(directory, tmp_path)

    changed = await change(directory, structs.replace(REST, remote_name="other"))
    other = await update_catalog(directory, ROOT, "theirs", CatalogUpdate(set_properties={"a": "b"}))

    assert changed.connection is not None
    assert changed.connection.remote_name == "other"
    assert other.connection == changed.connection
    assert opened_secrets(other, tmp_path) == SECRETS


async def test_new_secrets_replace_all_of_the_old(directory: Directory, tmp_path: Path) -> None:
    await make_federated(directory, tmp_path)

    changed = await change(directory, REST, ConnectionSecrets(client_secret=Secret(SECOND)))
    bearer = structs.replace(REST, authentication=Bearer())
    token = await change(directory, bearer, ConnectionSecrets(bearer_token=Secret(FIRST)))

    assert opened_secrets(changed, tmp_path) == ConnectionSecrets(client_secret=Secret(SECOND))
    assert opened_secrets(token, tmp_path) == ConnectionSecrets(bearer_token=Secret(FIRST))


@pytest.mark.parametrize(
    "moved",
    [
        structs.replace(REST, uri="https://evil.example.com/api"),
        structs.replace(REST, authentication=OAuth(client_id="somebody")),
        structs.replace(
            REST, authentication=OAuth(client_id="us", token_uri="https://evil.example.com/token")
        ),
        structs.replace(REST, authentication=Bearer()),
        structs.replace(REST, properties={"header.x-tenant": "another"}),
    ],
)
async def test_stored_secrets_never_go_elsewhere(
    directory: Directory, tmp_path: Path, moved: Connection
) -> None:
    await make_federated(directory, tmp_path)

    with pytest.raises(BadInput, match="Stored secrets"):
        await change(directory, moved)

    assert opened_secrets(await load_catalog(directory, ROOT, "theirs"), tmp_path) == SECRETS


async def test_secrets_go_when_nothing_is_proved_any_more(tmp_path: Path) -> None:
    async with open_directory_in(
        tmp_path, connections=ConnectionRules(is_implicit_allowed=True)
    ) as directory:
        await make_federated(directory, tmp_path)
        changed = await change(directory, structs.replace(REST, authentication=Implicit()))

    assert changed.connection is not None
    assert changed.connection.sealed_secrets is None


async def test_a_catalog_does_not_become_federated_or_of_another_kind(
    directory: Directory, tmp_path: Path
) -> None:
    await make_catalog(directory, tmp_path, "ours")
    await make_federated(directory, tmp_path)
    sql = Connection(
        type="SQL", uri="postgresql://db/lake", authentication=Password(user="us"), remote_name="sales"
    )

    update = CatalogUpdate(connection=REST, connection_secrets=SECRETS)
    with pytest.raises(BadInput, match="created without one") as caught:
        await update_catalog(directory, ROOT, "ours", update)
    assert "another EXTERNAL catalog" in caught.value.fix
    with pytest.raises(BadInput, match="kind of a remote"):
        await change(directory, sql, ConnectionSecrets(password=Secret(FIRST)))


async def test_who_changes_a_connection_may_create_catalogs(directory: Directory, tmp_path: Path) -> None:
    people = People(directory)
    await people.root()
    await make_federated(directory, tmp_path)
    catalog = await directory.open(DEFAULT_REALM, "theirs")
    owner = await people.add(
        "owner", catalog, *on_catalog(P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_CONTENT)
    )

    await update_catalog(directory, owner, "theirs", CatalogUpdate(set_properties={"a": "b"}))
    update = CatalogUpdate(connection=structs.replace(REST, remote_name="other"))
    with pytest.raises(AccessDenied):
        await update_catalog(directory, owner, "theirs", update)


async def test_properties_of_federation_are_for_federated_catalogs(
    directory: Directory, tmp_path: Path
) -> None:
    name = "cynosure.federation.max-staleness"
    await make_federated(directory, tmp_path, **{name: "30s"})
    await make_catalog(directory, tmp_path, "ours")

    changed = await update_catalog(
        directory,
        ROOT,
        "theirs",
        CatalogUpdate(set_properties={"cynosure.federation.credentials": "none"}, remove_properties=(name,)),
    )
    with pytest.raises(BadInput, match="federated catalogs only"):
        await update_catalog(directory, ROOT, "ours", CatalogUpdate(set_properties={name: "30s"}))
    with pytest.raises(BadInput, match="cannot be read"):
        await update_catalog(directory, ROOT, "theirs", CatalogUpdate(set_properties={name: "soon"}))

    assert changed.properties == {"cynosure.federation.credentials": "none"}


async def test_a_federated_catalog_takes_no_notifications(directory: Directory, tmp_path: Path) -> None:
    await make_federated(directory, tmp_path)
    catalog = await directory.open(DEFAULT_REALM, "theirs")
    table = Identifier(("ns",), "t")
    told = Notification("CREATE", "t", 1, "x", f"{catalog.base.text}/t/metadata/v1.metadata.json")

    with pytest.raises(BadInput, match="takes no notifications") as caught:
        await notify(catalog, ROOT, table, told)

    assert caught.value.fix


async def test_native_changes_are_refused(directory: Directory, tmp_path: Path) -> None:
    await make_federated(directory, tmp_path)
    catalog = await directory.open(DEFAULT_REALM, "theirs")

    with pytest.raises(OwnedElsewhere):
        await create_namespace(catalog, ROOT, ("ns",), {})
