"""What reaches the files of a plan: credentials to read, or signatures for these files and no others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import LocationRefused, NoSuchPlan, RestrictedByPolicy
from cynosure.catalog.file_access.modes import ANY_WAY, Delegation
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.cancel_plan import cancel_plan
from cynosure.catalog.operations.fetch_plan import fetch_plan
from cynosure.catalog.operations.sign_planned import sign_planned
from cynosure.catalog.planning.opening import Asking
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.common.clock import SystemClock
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.access.ports import (
    Credential,
    Inspected,
    Reached,
    Scope,
    Signed,
    StoreRequest,
    Subject,
    Vended,
)
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storage
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT, directory_on
from tests.catalog.planning.scans import BY_DATA, Scanned, make_engine, make_scanned, plan
from tests.catalog.restrictions.restricting import EVERYTHING, restrict
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio

S = Identifier(NS, "scanned")
ASKING = Asking(delegation=ANY_WAY)
SIGNING = Asking(delegation=Delegation(signing=True))
DIRECTORIES = CatalogSettings(planning=PlanningSettings(credentials="partitions"))


class Vendor:
    """Credentials that say what they are for; none for more than it is told."""

    is_refusing = False

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        if self.is_refusing and len(scope.locations) > 1:
            raise StorageRefused("Too long")
        config = {"for": "write" if scope.is_writable else "read"}
        now_ms = SystemClock().now_us() // 1_000
        made = tuple(Credential(each.text, config) for each in scope.locations)
        return Vended(made, now_ms, now_ms + 3_600_000)


class Signing:
    """Signs what it is asked to; a method says what a request does."""

    def inspect(self, request: StoreRequest) -> Inspected:
        actions: dict[str, Literal["read", "list", "write", "delete"]] = {
            "GET": "read",
            "PUT": "write",
            "DELETE": "delete",
            "LIST": "list",
        }
        return _Inspected(Reached(actions[request.method], (Location.parse(request.uri),)), request.uri)


class _Inspected:
    def __init__(self, reached: Reached, uri: str) -> None:
        self.reached = reached
        self._uri = uri

    async def sign(self, scope: Scope, subject: Subject) -> Signed:
        assert not scope.is_writable
        return Signed(self._uri, {"authorization": [subject.principal]})


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


def on_storage(
    catalog: OpenCatalog, *, vendor: Vendor | None = None, signer: Signing | None = None
) -> OpenCatalog:
    vending = None if vendor is None else Vending(vendor, SystemClock())
    storage = Storage(catalog.files, vending=vending, signer=signer)
    return OpenCatalog(catalog.realm, catalog.entity, catalog.shared, storage)


async def make(catalog: OpenCatalog, parts: int = 2) -> Scanned:
    scanned = await make_scanned(catalog, S, BY_DATA)
    values = [f"v{at}" for at in range(parts)]
    await scanned.commit([scanned.file(f"data={each}/f", partition=(each,)) for each in values])
    return scanned


async def prefixes_of(scanned: Scanned, asking: Asking = ASKING, caller: Caller = ROOT) -> list[str] | None:
    access = (await plan(scanned, caller, asking)).access
    if access is None or access.access.vended is None:
        return None
    assert all(each.config == {"for": "read"} for each in access.access.vended.credentials)
    return [each.prefix for each in access.access.vended.credentials]


async def test_credentials_are_to_read_the_table_and_only_for_who_asks(lake: Lake) -> None:
    scanned = await make(on_storage(lake.catalog, vendor=Vendor()))

    assert await prefixes_of(scanned) == [scanned.location]
    assert await prefixes_of(scanned, Asking()) is None


async def test_credentials_can_be_for_the_directories_of_the_planned_files(lake: Lake) -> None:
    async with directory_on(lake.directory.shared.persistence, lake.folder, DIRECTORIES) as directory:
        catalog = await directory.open(DEFAULT_REALM, "lake")
        vendor = Vendor()
        scanned = await make(on_storage(catalog, vendor=vendor))

        assert await prefixes_of(scanned) == [scanned.path("data=v0"), scanned.path("data=v1")]
        vendor.is_refusing = True
        other = Scanned(on_storage(catalog, vendor=vendor), S, scanned.location, scanned.spec)
        assert await prefixes_of(other) == [scanned.location]
        vendor.is_refusing = False
        many = [f"w{at}" for at in range(9)]
        await scanned.commit([scanned.file(f"data={each}/f", partition=(each,)) for each in many])
        assert await prefixes_of(scanned) == [scanned.location]


async def test_a_plan_that_goes_on_has_credentials_for_the_table(lake: Lake) -> None:
    settings = CatalogSettings(planning=PlanningSettings(credentials="partitions", page_files=1))
    async with directory_on(lake.directory.shared.persistence, lake.folder, settings) as directory:
        scanned = await make(on_storage(await directory.open(DEFAULT_REALM, "lake"), vendor=Vendor()))

        assert await prefixes_of(scanned) == [scanned.location]


async def test_only_reads_of_files_of_the_plan_are_signed(lake: Lake) -> None:
    scanned = await make(on_storage(lake.catalog, signer=Signing()))
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.TABLE_READ_DATA))
    deletes = [scanned.delete_file(f"data={each}/d", partition=(each,)) for each in ("v0", "v1")]
    await scanned.commit(deletes=deletes, operation="delete")
    chosen = {"type": "eq", "term": "data", "value": "v0"}
    planned = await plan(scanned, ann, SIGNING, filter=chosen)
    assert planned.access is not None
    assert planned.access.access.is_signed
    assert planned.access.places == (scanned.location,)

    async def sign(path: str, method: str = "GET", plan_id: str = planned.plan_id) -> Signed:
        request = StoreRequest(method, path, {})
        return await sign_planned(scanned.catalog, ann, S, plan_id, request)

    for name in ("data=v0/f", "data=v0/d"):
        assert (await sign(scanned.path(name))).headers == {"authorization": ["ann"]}
    for path in ("data=v1/f", "data=v1/d", "data=v0", "data=v0/new", "../metadata/snap-1.avro"):
        with pytest.raises(LocationRefused) as caught:
            await sign(scanned.path(path).replace("data/../", ""))
        assert caught.value.details["location"]
    for method in ("PUT", "DELETE", "LIST"):
        with pytest.raises(LocationRefused):
            await sign(scanned.path("data=v0/f"), method)

    await lake.people.revoke("ann", lake.catalog, *on_catalog(P.TABLE_READ_DATA))
    with pytest.raises(AccessDenied):
        await sign(scanned.path("data=v0/f"))


async def test_a_plan_that_is_signed_for_is_stored_until_it_is_cancelled(lake: Lake) -> None:
    scanned = await make(on_storage(lake.catalog, signer=Signing()))
    planned = await plan(scanned, ROOT, SIGNING)
    request = StoreRequest("GET", scanned.path("data=v0/f"), {})
    assert (await fetch_plan(scanned.catalog, ROOT, S, planned.plan_id, SIGNING)).access is not None

    await sign_planned(scanned.catalog, ROOT, S, planned.plan_id, request)
    await cancel_plan(scanned.catalog, ROOT, S, planned.plan_id)

    with pytest.raises(NoSuchPlan):
        await sign_planned(scanned.catalog, ROOT, S, planned.plan_id, request)


async def test_nothing_is_signed_for_who_is_restricted_by_now_but_for_an_engine(lake: Lake) -> None:
    catalog = on_storage(lake.catalog, signer=Signing())
    scanned = await make_scanned(catalog, S)
    await scanned.commit([scanned.file("f")])
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
    engine = await make_engine(lake.people, ann)
    plans = {who: (await plan(scanned, who, SIGNING)).plan_id for who in (ann, engine)}
    await restrict(lake, "few", AttachTo("table-like", (*NS, "scanned")), filter="id > 5")
    request = StoreRequest("GET", scanned.path("f"), {})

    with pytest.raises(RestrictedByPolicy):
        await sign_planned(catalog, ann, S, plans[ann], request)
    assert await sign_planned(catalog, engine, S, plans[engine], request)
    assert (await plan(scanned, ann, SIGNING)).access is None
