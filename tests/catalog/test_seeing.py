"""Hidden existence: what a caller may not see is answered as if it were not there (I42)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.rbac.privileges import GRANTABLE
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import (
    NoSuchCatalog,
    NoSuchCatalogRole,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
)
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.load_config import load_config
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table, load_table_for_data, table_exists
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.securables import Grant
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import View
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog
from tests.catalog.tables import T, make, properties, updates
from tests.catalog.world import NS, OTHER, Lake, V, open_lake

pytestmark = pytest.mark.anyio

HIDING = AuthSettings(hide_existence=True)
Act = Callable[[OpenCatalog, Caller, Identifier], Awaitable[object]]

ACTS: list[tuple[str, Act]] = [
    ("load", load_table),
    ("load for data", load_table_for_data),
    ("exists", table_exists),
    ("drop", drop_table),
    ("commit", lambda c, who, t: commit_table(c, who, TableChange(t, [], updates(properties(k="v"))))),
    ("rename", lambda c, who, t: rename_table(c, who, t, Identifier(OTHER, "new"))),
    ("load view", lambda c, who, t: load_view(c, who, V if t is T else t)),
    ("load namespace", lambda c, who, t: load_namespace(c, who, NS if t is T else ("missing",))),
    ("list", lambda c, who, t: list_tables(c, who, NS if t is T else ("missing",), Paging())),
    (
        "create",
        lambda c, who, t: create_table(c, who, CreateTable(NS if t is T else ("missing",), "x", SCHEMA)),
    ),
    (
        "register over",
        lambda c, who, t: register_table(c, who, t, f"{c.base.text}/m.json", is_overwrite=True),
    ),
    ("role", lambda c, who, t: load_catalog_role(c, who, "ann" if t is T else "missing")),
    ("grants", lambda c, who, t: list_grants(c, who, "ann" if t is T else "missing")),
]
MISSING = Identifier(("missing",), "missing")


class Counting(InternalAuthorizer):
    """Counts what it is asked."""

    asked: list[str]

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        self.asked.append(operation.name)
        return await super().decide(caller, operation, targets, view, explain=explain)

    async def has_catalog_role(self, caller: Caller, catalog: object) -> bool:
        self.asked.append("has-catalog-role")
        return await super().has_catalog_role(caller, catalog)  # type: ignore[arg-type]


def counting(directory: Directory) -> list[str]:
    authorizer = directory.shared.authorizer
    assert isinstance(authorizer, InternalAuthorizer)
    authorizer.__class__ = Counting
    assert isinstance(authorizer, Counting)
    authorizer.asked = []
    return authorizer.asked


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path, HIDING) as lake:
        yield lake


@pytest.mark.parametrize("act", [act for _, act in ACTS], ids=[name for name, _ in ACTS])
async def test_what_is_unseen_is_told_in_the_words_and_with_the_work_for_what_is_missing(
    lake: Lake, act: Act
) -> None:
    ann = await lake.people.add("ann", lake.catalog)
    asked = counting(lake.directory)

    unseen = await refusal(act, lake.catalog, ann, T)
    work = list(asked)
    asked.clear()
    missing = await refusal(act, lake.catalog, ann, MISSING)

    assert isinstance(unseen, NotFound)
    assert type(unseen) is type(missing)
    assert shape(unseen) == shape(missing)
    assert work == asked
    assert work, "the authorizer was asked at all"
    # For the audit: both were refused for a missing right.
    assert isinstance(unseen.__cause__, AccessDenied)
    assert isinstance(missing.__cause__, AccessDenied)


async def refusal(act: Act, catalog: OpenCatalog, caller: Caller, table: Identifier) -> Exception:
    with pytest.raises(Exception) as refused:  # noqa: PT011 - what it is is compared
        await act(catalog, caller, table)
    return refused.value


def shape(error: Exception) -> str:
    """The text without the names that were asked for."""
    text = str(error)
    for name in ("missing.missing", "missing", "ns.t", "ns.v", "ann", "ns"):
        text = text.replace(name, "NAME")
    return text


async def test_who_may_list_a_thing_is_told_that_it_may_not_do_more(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))

    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)
    with pytest.raises(NoSuchView):
        await load_view(lake.catalog, ann, V)
    with pytest.raises(NoSuchNamespace):
        await load_namespace(lake.catalog, ann, OTHER)
    with pytest.raises(AccessDenied):
        await load_namespace(lake.catalog, ann, NS)  # It leads to what is seen.


async def test_who_may_list_all_of_a_kind_is_told_the_truth_about_it(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.TABLE_LIST, P.NAMESPACE_LIST))

    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)
    with pytest.raises(NoSuchTable):
        await load_table(lake.catalog, ann, MISSING)
    with pytest.raises(AccessDenied):
        await load_namespace(lake.catalog, ann, NS)


async def test_who_may_do_something_does_it_as_before(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_DATA))

    await load_table(lake.catalog, ann, T)
    assert not (await load_table_for_data(lake.catalog, ann, T)).is_writable
    with pytest.raises(NoSuchTable):
        await load_table(lake.catalog, ROOT, MISSING)


async def test_a_role_is_unseen_by_who_may_not_list_roles(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.CATALOG_MANAGE_ACCESS))
    with pytest.raises(NoSuchCatalogRole):
        await load_catalog_role(lake.catalog, ann, "ann")
    await grant_privilege(lake.catalog, ann, "ann", on_namespace(NS, P.TABLE_LIST)[0])

    bob = await lake.people.add("bob", lake.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))
    await load_catalog_role(lake.catalog, bob, "ann")


# --- catalogs -----------------------------------------------------------------------------------------------

CATALOG_ACTS: list[tuple[str, Callable[[Directory, Caller, str], Awaitable[object]]]] = [
    ("open", lambda d, who, name: d.open_for(who, name)),
    ("config", load_config),
    ("load", load_catalog),
    ("update", lambda d, who, name: update_catalog(d, who, name, CatalogUpdate(set_properties={"a": "b"}))),
    ("drop", drop_catalog),
]


@pytest.mark.parametrize("act", [act for _, act in CATALOG_ACTS], ids=[name for name, _ in CATALOG_ACTS])
@pytest.mark.parametrize("has_another", [False, True], ids=["in none", "in another"])
async def test_a_catalog_that_one_has_nothing_to_do_with_is_not_there(
    lake: Lake, act: Callable[[Directory, Caller, str], Awaitable[object]], has_another: bool
) -> None:
    # Sorts first, so that it is what the authorizer is asked about in place of a missing one.
    other = await make_catalog(lake.directory, lake.folder, "aaa")
    ann = await lake.people.add("ann")
    if has_another:
        everything = [Grant("catalog", each) for each in GRANTABLE["catalog"]]
        await lake.people.join("ann", other, *everything)
    asked = counting(lake.directory)

    with pytest.raises(NoSuchCatalog) as unseen:
        await act(lake.directory, ann, "lake")
    work = list(asked)
    asked.clear()
    with pytest.raises(NoSuchCatalog) as missing:
        await act(lake.directory, ann, "gone")

    assert str(unseen.value).replace("lake", "") == str(missing.value).replace("gone", "")
    assert work
    assert work == asked
    assert isinstance(unseen.value.__cause__, AccessDenied)
    assert isinstance(missing.value.__cause__, AccessDenied)


async def test_a_catalog_in_which_one_has_a_role_is_there(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog)

    assert (await lake.directory.open_for(ann, "lake")).entity.id == lake.catalog.entity.id
    assert await load_config(lake.directory, ann, "lake") == {}
    with pytest.raises(AccessDenied):
        await load_catalog(lake.directory, ann, "lake")
    with pytest.raises(AccessDenied):
        await drop_catalog(lake.directory, ann, "lake")


async def test_a_name_that_is_taken_is_told_only_to_who_may_create_there(lake: Lake) -> None:
    await make(lake.catalog, Identifier(OTHER, "t"))
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(OTHER, P.TABLE_CREATE))

    with pytest.raises(TableExists):
        await create_table(lake.catalog, ann, CreateTable(OTHER, "t", SCHEMA))
    with pytest.raises(NoSuchNamespace):
        await create_table(lake.catalog, ann, CreateTable(NS, "t", SCHEMA))
