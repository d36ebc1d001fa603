"""`catalog_admin`: every catalog has it, whatever was interrupted, and whatever version made the catalog."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ADMIN, SERVICE_ADMIN
from cynosure.auth.errors import NoSuchPrincipalRole
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogClosed, CatalogExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations import create_catalog as creating
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.drop_catalog import drop_catalog, reopen_catalog
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.first_role import ensure_catalog_admins
from cynosure.catalog.roles.list_assignees import list_assignees
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.common.errors import Unavailable
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_access import P, People, on_catalog
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in

pytestmark = pytest.mark.anyio


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path) as directory:
        yield directory


@pytest.fixture
def people(directory: Directory) -> People:
    return People(directory)


def wanted(folder: Path, name: str = "lake", **options: tuple[str, ...]) -> NewCatalog:
    location = f"file://{folder / name}"
    storage = FileStorage(allowed_locations=(location,))
    return NewCatalog(name=name, base_location=location, storage=storage, **options)


async def admins_of(catalog: OpenCatalog) -> list[str]:
    return [role.name for role in (await list_assignees(catalog, ROOT, CATALOG_ADMIN)).roles]


async def test_a_new_catalog_is_managed_by_the_service_admin(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root = await people.root()
    await create_catalog(directory, root, wanted(tmp_path))
    catalog = await directory.open_for(root, "lake")

    assert await admins_of(catalog) == [SERVICE_ADMIN]
    granted = (await list_grants(catalog, root, CATALOG_ADMIN)).grants
    assert set(granted) == set(on_catalog(P.CATALOG_MANAGE_ACCESS, P.CATALOG_MANAGE_METADATA))
    await create_namespace(catalog, root, ("ns",), {})
    await create_table(catalog, root, CreateTable(("ns",), "t", SCHEMA))
    await load_table(catalog, root, Identifier(("ns",), "t"))
    with pytest.raises(AccessDenied):  # It manages metadata, not data.
        await load_table_for_data(catalog, root, Identifier(("ns",), "t"))


async def test_its_creator_may_say_who_manages_it(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root, ann = await people.root(), await people.add("ann")
    await create_catalog(directory, root, wanted(tmp_path, admins=("ann",)))
    catalog = await directory.open_for(ann, "lake")

    assert await admins_of(catalog) == ["ann"]
    await create_namespace(catalog, ann, ("ns",), {})
    with pytest.raises(AccessDenied):
        await create_namespace(catalog, root, ("other",), {})


async def test_an_admin_that_is_not_there_leaves_no_catalog(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root = await people.root()
    with pytest.raises(NoSuchPrincipalRole):
        await create_catalog(directory, root, wanted(tmp_path, admins=("missing",)))

    await create_catalog(directory, root, wanted(tmp_path))


async def test_a_name_that_is_taken_leaves_no_references(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root = await people.root()
    await create_catalog(directory, root, wanted(tmp_path))
    before = await directory.shared.persistence.backend.list_refs()

    with pytest.raises(CatalogExists):
        await create_catalog(directory, root, wanted(tmp_path))

    assert await directory.shared.persistence.backend.list_refs() == before


async def test_a_listed_catalog_has_its_admin_at_the_first_moment(
    directory: Directory, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies right after the catalog was listed."""
    root = await people.root()

    async def die(*_: object) -> None:
        raise Unavailable("This process is dead")

    monkeypatch.setattr(creating, "adopt_references", die)
    with pytest.raises(Unavailable):
        await create_catalog(directory, root, wanted(tmp_path))

    assert await admins_of(await directory.open(DEFAULT_REALM, "lake")) == [SERVICE_ADMIN]


async def test_an_admin_that_was_swept_between_listing_and_adopting_is_made_again(
    directory: Directory, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await people.root()
    backend = directory.shared.persistence.backend
    adopt = creating.adopt_references

    async def sweep_first(store: object, keys: list, clock: object) -> None:
        for ref in await backend.fetch_refs(keys):
            assert ref is not None
            assert await backend.delete_ref(ref)
        await adopt(store, keys, clock)  # type: ignore[arg-type]

    monkeypatch.setattr(creating, "adopt_references", sweep_first)
    await create_catalog(directory, root, wanted(tmp_path))

    assert await admins_of(await directory.open(DEFAULT_REALM, "lake")) == [SERVICE_ADMIN]


async def test_catalogs_of_an_earlier_version_get_their_admin_at_the_start(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    """No realm had principals, and no catalog roles."""
    catalog = await make_catalog(directory, tmp_path)
    persistence = directory.shared.persistence
    ref = await persistence.heads.load(catalog.grants.key)
    assert await persistence.backend.delete_ref(ref)
    await persistence.mend()
    root = await people.root()
    with pytest.raises(AccessDenied):
        await create_namespace(catalog, root, ("ns",), {})

    assert await ensure_catalog_admins(directory) == 1
    assert await ensure_catalog_admins(directory) == 0

    await create_namespace(catalog, root, ("ns",), {})


async def test_a_catalog_whose_last_admin_is_gone_is_given_back_to_the_service_admin(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root = await people.root()
    await people.add("ann")
    await create_catalog(directory, root, wanted(tmp_path, admins=("ann",)))
    await delete_principal_role(people.identities, ROOT, "ann")

    assert await ensure_catalog_admins(directory) == 1

    assert await admins_of(await directory.open(DEFAULT_REALM, "lake")) == [SERVICE_ADMIN]


# --- dropping -----------------------------------------------------------------------------------------------


async def test_nothing_is_granted_in_a_catalog_that_is_being_dropped_until_it_is_opened_again(
    directory: Directory, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await people.root()
    await create_catalog(directory, root, wanted(tmp_path))
    catalog = await directory.open_for(root, "lake")

    async def die(*_: object, **__: object) -> None:
        raise Unavailable("This process is dead")

    with monkeypatch.context() as patched:
        patched.setattr(Directory, "commit_authorizing", die)
        with pytest.raises(Unavailable):
            await drop_catalog(directory, root, "lake")

    with pytest.raises(CatalogClosed):
        await create_catalog_role(catalog, root, "reader", {})
    assert await ensure_catalog_admins(directory) == 0

    await reopen_catalog(directory, root, "lake")
    await create_catalog_role(catalog, root, "reader", {})
    await create_namespace(catalog, root, ("ns",), {})


async def test_a_catalog_made_anew_under_a_name_has_no_grants_of_the_old_one(
    directory: Directory, people: People, tmp_path: Path
) -> None:
    root: Caller = await people.root()
    await create_catalog(directory, root, wanted(tmp_path))
    ann = await people.add("ann", await directory.open_for(root, "lake"), *on_catalog(P.NAMESPACE_CREATE))
    await drop_catalog(directory, root, "lake")
    await create_catalog(directory, root, wanted(tmp_path))

    with pytest.raises(AccessDenied):
        await create_namespace(await directory.open_for(ann, "lake"), ann, ("ns",), {})
