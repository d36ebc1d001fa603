"""Signatures for the tables of a catalog in a real store that gives no credentials."""

from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused, NoSuchTable
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.sign_request import sign_request
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.access.ports import Signed, StoreRequest
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_access import P, People, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA

pytestmark = pytest.mark.anyio

ORDERS = Identifier(("ns",), "orders")
SIGNING = Delegation(signing=True)


class Lake:
    """A catalog with one table."""

    def __init__(self, server: S3Server, directory: Directory, catalog: OpenCatalog, people: People) -> None:
        self.server = server
        self.directory = directory
        self.catalog = catalog
        self.people = people

    async def make_table(self, name: str, location: str = "") -> None:
        wanted = CreateTable(
            ("ns",), name, SCHEMA, location=location or f"{self.catalog.entity.base_location}/{name}"
        )
        await create_table(self.catalog, ROOT, wanted)

    def request(self, method: str, path: str, query: str = "") -> StoreRequest:
        base = self.catalog.entity.base_location.removeprefix("s3://")
        return StoreRequest(method, f"{self.server.endpoint}/{base}/{path}{query}", {})

    async def sign(
        self, who: Caller, method: str, path: str, query: str = "", table: Identifier = ORDERS
    ) -> Signed:
        # As for every request, the catalog is looked up anew.
        catalog = await self.directory.open(DEFAULT_REALM, "s3-lake")
        return await sign_request(catalog, who, table, self.request(method, path, query))


@pytest.fixture
async def lake(directory: Directory, plain_s3_server: S3Server) -> AsyncIterator[Lake]:
    base = plain_s3_server.fresh_location()
    storage = S3Storage(
        allowed_locations=(base,),
        endpoint=plain_s3_server.endpoint,
        region=plain_s3_server.region,
        path_style_access=True,
        sts=S3Sts(is_unavailable=True),
    )
    keys = S3Keys(plain_s3_server.access_key_id, Secret(plain_s3_server.secret_access_key))
    await create_catalog(
        directory, ROOT, NewCatalog(name="s3-lake", base_location=base, storage=storage, storage_keys=keys)
    )
    catalog = await directory.open(DEFAULT_REALM, "s3-lake")
    await create_namespace(catalog, ROOT, ("ns",), {})
    people = People(directory)
    await people.root()
    made = Lake(plain_s3_server, directory, catalog, people)
    await made.make_table("orders")
    yield made
    files = catalog.files
    await files.delete_many([found.location async for found in files.list(catalog.base)])


async def test_whoever_may_read_has_reads_signed_and_nothing_else(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(ORDERS, P.TABLE_READ_DATA))

    for method in ("GET", "HEAD"):
        assert "authorization" in (await lake.sign(ann, method, "orders/a")).headers
    for method, query in (("PUT", ""), ("DELETE", ""), ("POST", "?uploads"), ("DELETE", "?uploadId=1")):
        with pytest.raises(AccessDenied):
            await lake.sign(ann, method, "orders/a", query)


async def test_whoever_may_write_has_writes_signed_too(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(ORDERS, P.TABLE_WRITE_DATA))

    for method, query in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "?uploads")):
        assert (await lake.sign(ann, method, "orders/a", query)).uri.endswith(f"orders/a{query}")


async def test_to_see_a_table_is_not_enough(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.TABLE_FULL_METADATA))

    with pytest.raises(AccessDenied):
        await lake.sign(ann, "GET", "orders/a")


async def test_a_right_that_is_taken_away_ends_with_the_next_request(lake: Lake) -> None:
    rights = on_table(ORDERS, P.TABLE_WRITE_DATA)
    ann = await lake.people.add("ann", lake.catalog, *rights)
    await lake.sign(ann, "PUT", "orders/a")

    await lake.people.revoke("ann", lake.catalog, *rights)

    with pytest.raises(AccessDenied):
        await lake.sign(ann, "PUT", "orders/a")


@pytest.mark.parametrize("path", ["orders2/a", "a", "other/a", "Orders/a"])
async def test_a_request_that_leaves_the_table_is_refused(lake: Lake, path: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        with pytest.raises(LocationRefused, match="outside the table's files"):
            await lake.sign(ROOT, method, path)


async def test_the_source_of_a_copy_and_every_key_of_a_deletion_must_be_the_tables(lake: Lake) -> None:
    base = lake.catalog.entity.base_location.removeprefix("s3://")
    bucket, _, key = base.partition("/")
    mixed = "".join(f"<Object><Key>{key}/{path}</Key></Object>" for path in ("orders/a", "orders2/a"))
    copy = lake.request("PUT", "orders/a")
    copy = StoreRequest("PUT", copy.uri, {"x-amz-copy-source": [f"{base}/orders2/a"]})
    deletion = StoreRequest(
        "POST", f"{lake.server.endpoint}/{bucket}?delete", {}, body=f"<Delete>{mixed}</Delete>"
    )

    for request in (copy, deletion):
        with pytest.raises(LocationRefused):
            await sign_request(lake.catalog, ROOT, ORDERS, request)


async def test_only_the_tables_own_directory_is_listed(lake: Lake) -> None:
    base = lake.catalog.entity.base_location.removeprefix("s3://")
    bucket, _, key = base.partition("/")
    uri = f"{lake.server.endpoint}/{bucket}?list-type=2&prefix={key}"

    for suffix in ("/orders/", "/orders/da"):
        await sign_request(lake.catalog, ROOT, ORDERS, StoreRequest("GET", uri + suffix, {}))
    for suffix in ("/orders", "/", "/orders2/", ""):
        with pytest.raises(LocationRefused):
            await sign_request(lake.catalog, ROOT, ORDERS, StoreRequest("GET", uri + suffix, {}))


async def test_a_location_that_is_not_allowed_any_more_is_not_signed_for(lake: Lake) -> None:
    inner = f"{lake.catalog.entity.base_location}/inner"
    storage = structs.replace(lake.catalog.entity.storage, allowed_locations=(inner,))
    update = CatalogUpdate(base_location=inner, storage=storage)
    await update_catalog(lake.directory, ROOT, "s3-lake", update)
    request = lake.request("GET", "orders/a")

    opened = await lake.directory.open(DEFAULT_REALM, "s3-lake")
    with pytest.raises(LocationRefused, match="does not allow"):
        await sign_request(opened, ROOT, ORDERS, request)


async def test_a_name_stands_for_the_table_that_has_it_now(lake: Lake) -> None:
    other = Identifier(("ns",), "other")
    await rename_table(lake.catalog, ROOT, ORDERS, other)
    await lake.make_table("orders", f"{lake.catalog.entity.base_location}/second")

    await lake.sign(ROOT, "GET", "second/a")
    await lake.sign(ROOT, "GET", "orders/a", table=other)
    with pytest.raises(LocationRefused):
        await lake.sign(ROOT, "GET", "orders/a")


async def test_for_a_table_that_is_gone_nothing_is_signed(lake: Lake) -> None:
    await drop_table(lake.catalog, ROOT, ORDERS)

    with pytest.raises(NoSuchTable):
        await lake.sign(ROOT, "GET", "orders/a")


async def test_files_of_a_place_that_properties_name_are_the_tables_too(lake: Lake) -> None:
    base = lake.catalog.entity.base_location
    wanted = CreateTable(
        ("ns",), "split", SCHEMA, location=f"{base}/split", properties={"write.data.path": f"{base}/data"}
    )
    await create_table(lake.catalog, ROOT, wanted)
    split = Identifier(("ns",), "split")

    for path in ("split/a", "data/a"):
        await lake.sign(ROOT, "PUT", path, table=split)
    with pytest.raises(LocationRefused):
        await lake.sign(ROOT, "PUT", "data/a")


CREATING = (P.TABLE_CREATE, P.TABLE_WRITE_DATA)
NEW = Identifier(("ns",), "new")


async def stage(lake: Lake, who: Caller) -> None:
    wanted = CreateTable(
        ("ns",), "new", SCHEMA, location=f"{lake.catalog.entity.base_location}/new", is_staged=True
    )
    await create_table(lake.catalog, who, wanted, delegation=SIGNING)


async def test_whoever_creates_a_table_has_requests_signed_before_it_is_there(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(("ns",), *CREATING))
    await stage(lake, ann)

    for method in ("PUT", "GET", "DELETE"):
        await lake.sign(ann, method, "new/a", table=NEW)
    with pytest.raises(LocationRefused):
        await lake.sign(ann, "PUT", "orders/a", table=NEW)


async def test_nobody_else_has_requests_signed_for_a_table_that_is_being_created(lake: Lake) -> None:
    rights = on_namespace(("ns",), *CREATING)
    ann, bob = [await lake.people.add(name, lake.catalog, *rights) for name in ("ann", "bob")]
    await stage(lake, ann)

    for who in (bob, ROOT):
        with pytest.raises(NoSuchTable):
            await lake.sign(who, "GET", "new/a", table=NEW)


async def test_whoever_may_not_create_it_any_more_has_nothing_signed(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(("ns",), *CREATING))
    await stage(lake, ann)

    await lake.people.revoke("ann", lake.catalog, *on_namespace(("ns",), P.TABLE_WRITE_DATA))

    with pytest.raises(AccessDenied):
        await lake.sign(ann, "PUT", "new/a", table=NEW)


async def test_a_request_that_is_not_understood_is_refused_whoever_asks(lake: Lake) -> None:
    with pytest.raises(BadInput):
        await lake.sign(ROOT, "GET", "orders/a", "?acl")


async def test_of_local_files_nothing_is_signed(catalog: OpenCatalog) -> None:
    await create_table(catalog, ROOT, CreateTable(("ns",), "orders", SCHEMA))

    with pytest.raises(BadInput, match="are not signed") as refused:
        await sign_request(catalog, ROOT, ORDERS, StoreRequest("GET", "https://a/b", {}))
    assert refused.value.field == "provider"
