"""A store whose credentials open more than they should is found out."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.catalog.checking.giving import Giving
from cynosure.catalog.checking.probe import Probe, make_probe
from cynosure.catalog.checking.steps import Finding
from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended, Vendor
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.vendor import S3Vendor
from cynosure.storage.access.vending import Vending
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_catalog import ROOT, open_directory_in

pytestmark = pytest.mark.anyio


class Careless:
    """Gives everybody the key that owns the store, as one without session policies would."""

    def __init__(self, server: S3Server) -> None:
        keys = S3Session(server.access_key_id, Secret(server.secret_access_key))
        self._properties = keys.to_properties()

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        return Vended((Credential(scope.locations[0].text, self._properties),), 0, 2**50)


class Generous:
    """Gives credentials to write to whoever asks to read."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        return await self._vendor.mint(structs.replace(scope, is_writable=True), subject)


class Corner:
    """A catalog on a real store, of which tests choose who gives credentials."""

    def __init__(self, server: S3Server, directory: Directory, catalog: OpenCatalog) -> None:
        self.server = server
        self.directory = directory
        self.catalog = catalog
        self.probe: Probe = make_probe(catalog.base, random.Random())

    def give(self, vendor: Vendor) -> Giving:
        clock = self.directory.shared.persistence.clock
        storage = structs.replace(self.catalog.storage, vending=Vending(vendor, clock))
        catalog = OpenCatalog(DEFAULT_REALM, self.catalog.entity, self.directory.shared, storage)
        return Giving(catalog, self.directory.storages, ROOT, self.probe)

    def honest(self) -> Vendor:
        config = self.catalog.entity.storage
        assert isinstance(config, S3Storage)
        keys = StaticKeys(S3Session(self.server.access_key_id, Secret(self.server.secret_access_key)))
        return S3Vendor(config, keys, StorageSettings(), self.directory.shared.persistence.clock)


@pytest.fixture
async def corner(sts_server: S3Server, tmp_path: Path) -> AsyncIterator[Corner]:
    base = sts_server.fresh_location()
    storage = S3Storage(
        allowed_locations=(base,),
        endpoint=sts_server.endpoint,
        region=sts_server.region,
        path_style_access=True,
        sts=S3Sts(role_arn=sts_server.role_arn),
    )
    keys = S3Keys(sts_server.access_key_id, Secret(sts_server.secret_access_key))
    async with open_directory_in(tmp_path) as directory:
        wanted = NewCatalog(name="lake", base_location=base, storage=storage, storage_keys=keys)
        await create_catalog(directory, ROOT, wanted)
        catalog = await directory.open(DEFAULT_REALM, "lake")
        made = Corner(sts_server, directory, catalog)
        yield made
        await catalog.files.delete_many(made.probe.everything())
        assert [each async for each in catalog.files.list(catalog.base)] == [], "the probe names all of it"


async def test_credentials_that_open_everything_fail_loudly(corner: Corner) -> None:
    giving = corner.give(Careless(corner.server))

    with pytest.raises(Finding, match="does not enforce session policies") as to_write:
        await giving.read_write_credentials()
    with pytest.raises(Finding, match="does not enforce session policies") as to_read:
        await giving.read_only_credentials()

    assert to_write.value.details["opened"] == "read, list, write, delete"
    assert to_read.value.details["opened"] == (
        "write with credentials to read, delete with credentials to read, read, list, write, delete"
    )
    assert "stsUnavailable" in to_write.value.fix


async def test_credentials_to_read_that_write_fail_loudly(corner: Corner) -> None:
    giving = corner.give(Generous(corner.honest()))

    await giving.read_write_credentials()
    with pytest.raises(Finding, match="does not enforce session policies") as found:
        await giving.read_only_credentials()

    assert found.value.details["opened"] == "write with credentials to read, delete with credentials to read"


async def test_what_a_careless_store_let_happen_does_not_blame_an_honest_one(corner: Corner) -> None:
    with pytest.raises(Finding):
        await corner.give(Careless(corner.server)).read_only_credentials()

    honest = corner.give(corner.honest())
    await honest.read_write_credentials()
    await honest.read_only_credentials()
