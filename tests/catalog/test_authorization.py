"""Every operation needs exactly its privileges: without one it is refused and nothing changes (I40)."""

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cynosure import catalog as catalog_room
from cynosure.auth.caller import Caller
from cynosure.auth.rbac.privileges import GRANTABLE
from cynosure.auth.require import AccessDenied
from cynosure.catalog.bulk_import import import_tables
from cynosure.catalog.cascading.drop_catalog import drop_catalog_cascade
from cynosure.catalog.cascading.explain import plan_catalog_cascade
from cynosure.catalog.errors import (
    NoSuchCatalog,
    NoSuchCatalogRole,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
)
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.drop_catalog import drop_catalog, reopen_catalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.load_config import load_config
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table, load_table_for_data, table_exists
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.operations.update_catalog import rewrap_catalog
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.securables import Grant
from cynosure.catalog.table_changes import TableChange
from cynosure.storage.config import FileStorage
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog
from tests.catalog.access_cases import ALL, CASES, GRANT, Case, Given
from tests.catalog.cascade_cases import CASCADE_CASES, TASK_CASES
from tests.catalog.generic_cases import GENERIC_CASES
from tests.catalog.policy_cases import POLICY_CASES
from tests.catalog.tables import T
from tests.catalog.upkeep_cases import UPKEEP_CASES
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "case",
    [*CASES, *GENERIC_CASES, *POLICY_CASES, *CASCADE_CASES, *TASK_CASES, *UPKEEP_CASES],
    ids=lambda case: case.name,
)
async def test_an_operation_needs_exactly_its_privileges(case: Case, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog)
        given = None if case.given is None else await case.given(lake)

        for lacking in case.needs:
            held = [each for each in case.needs if each is not lacking]
            await lake.people.grant("ann", lake.catalog, *held)
            await expect_denial(lake, case, ann, given, lacking)
            await lake.people.revoke("ann", lake.catalog, *held)

        await lake.people.grant("ann", lake.catalog, *case.needs)
        await case.act(lake, ann, given)


async def expect_denial(lake: Lake, case: Case, caller: Caller, given: Given, lacking: Grant) -> None:
    before = await lake.heads()
    with pytest.raises(AccessDenied) as refused:
        await case.act(lake, caller, given)
    assert await lake.heads() == before, "nothing was changed"
    assert refused.value.decision.missing, "the refusal says what is missing"
    assert "ann" in str(refused.value)
    held = {each.privilege.name for each in case.needs if each is not lacking}
    assert held.isdisjoint(each.privilege for each in refused.value.decision.missing)


async def test_nobody_but_the_service_admin_makes_lists_or_drops_catalogs(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        everything = [Grant("catalog", each) for each in sorted(GRANTABLE["catalog"])]
        ann = await lake.people.add("ann", lake.catalog, *everything)
        root = await lake.people.root()
        wanted = NewCatalog(
            name="new",
            base_location=f"file://{tmp_path}/new",
            storage=FileStorage(allowed_locations=(f"file://{tmp_path}/new",)),
        )
        acts: list[Callable[[Caller], Awaitable[object]]] = [
            lambda who: list_catalogs(lake.directory, who),
            lambda who: create_catalog(lake.directory, who, wanted),
            lambda who: plan_catalog_cascade(lake.directory, who, "new", is_purging=False),
            lambda who: drop_catalog(lake.directory, who, "new"),
        ]

        for act in acts:
            before = await lake.heads()
            with pytest.raises((AccessDenied, NoSuchCatalog)):
                await act(ann)
            assert await lake.heads() == before
            await act(root)
        with pytest.raises(AccessDenied):
            await drop_catalog(lake.directory, ann, "lake")
        with pytest.raises(AccessDenied):
            await drop_catalog_cascade(lake.directory, ann, "lake")
        with pytest.raises(AccessDenied):
            await reopen_catalog(lake.directory, ann, "lake")
        with pytest.raises(AccessDenied):
            await rewrap_catalog(lake.directory, ann, "lake", lake.catalog.entity.id)


async def test_an_import_of_many_tables_needs_the_whole_catalog(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        catalog = await make_catalog(lake.directory, tmp_path, "empty")
        ann = await lake.people.add("ann", catalog, *on_catalog(P.TABLE_CREATE, P.NAMESPACE_CREATE))

        before = await lake.heads()
        with pytest.raises(AccessDenied):
            await import_tables(catalog, ann, [])
        assert await lake.heads() == before

        await lake.people.grant("ann", catalog, *on_catalog(P.CATALOG_MANAGE_METADATA))
        await import_tables(catalog, ann, [])


@pytest.mark.parametrize("path", [("missing",), ("ns", "missing")])
async def test_what_is_missing_is_missing_to_everyone(path: tuple[str, ...], tmp_path: Path) -> None:
    missing = Identifier(path, "t")
    acts: list[tuple[type[Exception], Callable[[Lake, Caller], Awaitable[object]]]] = [
        (NoSuchNamespace, lambda w, who: load_namespace(w.catalog, who, path)),
        (NoSuchNamespace, lambda w, who: list_tables(w.catalog, who, path, ALL)),
        (NoSuchNamespace, lambda w, who: create_table(w.catalog, who, CreateTable(path, "t", SCHEMA))),
        (NoSuchTable, lambda w, who: load_table(w.catalog, who, missing)),
        (NoSuchTable, lambda w, who: load_table_for_data(w.catalog, who, missing)),
        (NoSuchTable, lambda w, who: table_exists(w.catalog, who, missing)),
        (NoSuchTable, lambda w, who: drop_table(w.catalog, who, missing)),
        (NoSuchTable, lambda w, who: commit_table(w.catalog, who, TableChange(missing, [], []))),
        (NoSuchView, lambda w, who: load_view(w.catalog, who, missing)),
        (NoSuchCatalogRole, lambda w, who: load_catalog_role(w.catalog, who, "missing")),
        (NoSuchCatalogRole, lambda w, who: grant_privilege(w.catalog, who, "missing", GRANT)),
        (NoSuchCatalog, lambda w, who: load_catalog(w.directory, who, "missing")),
        (NoSuchCatalog, lambda w, who: load_config(w.directory, who, "missing")),
    ]
    async with open_lake(tmp_path) as lake:
        for who in (await lake.people.add("nobody"), await lake.people.root(), ROOT):
            for expected, act in acts:
                with pytest.raises(expected):
                    await act(lake, who)


async def test_the_configuration_is_for_those_who_have_a_role_in_the_catalog(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        nobody = await lake.people.add("nobody")
        ann = await lake.people.add("ann", lake.catalog)

        with pytest.raises(AccessDenied):
            await load_config(lake.directory, nobody, "lake")
        assert await load_config(lake.directory, ann, "lake") == {}
        assert await load_config(lake.directory, await lake.people.root(), "lake") == {}


async def test_the_rights_of_a_caller_without_identity_are_none(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        with pytest.raises(AccessDenied):
            await load_table(lake.catalog, Caller("root"), T)


def test_every_operation_has_a_case() -> None:
    """So that none is added without being authorized."""
    here = Path(__file__)
    cases = [here, *here.parent.glob("*_cases.py")]
    tried = "".join(each.read_text() for each in cases)
    forgotten = {
        name
        for room in ("generic", "operations", "roles")
        for info in pkgutil.iter_modules([str(Path(catalog_room.__file__).parent / room)])
        for name, function in vars(importlib.import_module(f"cynosure.catalog.{room}.{info.name}")).items()
        if inspect.iscoroutinefunction(function)
        and function.__module__.endswith(f".{info.name}")
        and not name.startswith("_")
        and "caller" in inspect.signature(function).parameters
        and f"{name}(" not in tried
        and f" {name}," not in tried
    }

    assert forgotten == PARTS


PARTS = {
    # Of other operations, which are authorized.
    "adopt_locations",
    "authorize_all",
    "commit_grants",
    "commit_role",
    "ensure_catalog_admin",
    "load_registrable",
    "load_registrable_view",
    "prepare_change",
    "find_promised",
    "give_access_to_created",
    "give_generic_access",
    "own_catalog",
    "prepare_registration",
    "prepare_reservation",
    "prepare_generic_drop",
    "read_role",
    "remove_grants",
    "touch_catalog",
    # Done by the server itself.
    "forget_dropped",
    "forget_staged",
    "release_locations",
    "sweep_grants",
}
