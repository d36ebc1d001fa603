"""Filtered lists: who may not list a place is shown what it may see there, and no more."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.list_views import list_views
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.common.errors import BadPageToken
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table, on_view
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.tables import T, make
from tests.catalog.world import DEEP, NS, OTHER, Lake, V, open_lake

pytestmark = pytest.mark.anyio

FILTERING = AuthSettings(filter_lists=True)
BOTH = AuthSettings(filter_lists=True, hide_existence=True)


@pytest.fixture(params=[FILTERING, BOTH], ids=["filtering", "filtering and hiding"])
async def lake(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path, request.param) as lake:
        yield lake


async def namespaces(lake: Lake, who: Caller, parent: Namespace = ()) -> list[Namespace]:
    answer = msgspec.json.decode(await list_namespaces(lake.catalog, who, parent, Paging()))
    return [tuple(each) for each in answer["namespaces"]]


async def tables(lake: Lake, who: Caller, namespace: Namespace) -> list[str]:
    answer = msgspec.json.decode(await list_tables(lake.catalog, who, namespace, Paging()))
    return [each["name"] for each in answer["identifiers"]]


async def views(lake: Lake, who: Caller, namespace: Namespace) -> list[str]:
    answer = msgspec.json.decode(await list_views(lake.catalog, who, namespace, Paging()))
    return [each["name"] for each in answer["identifiers"]]


async def test_what_is_granted_is_shown_and_the_way_to_it(lake: Lake) -> None:
    deep = Identifier(DEEP, "d")
    await make(lake.catalog, deep)
    await make(lake.catalog, Identifier(NS, "hidden"))
    ann = await lake.people.add("ann", lake.catalog, *on_table(deep, P.TABLE_READ_DATA))

    assert await namespaces(lake, ann) == [NS]
    assert await namespaces(lake, ann, NS) == [DEEP]
    assert await namespaces(lake, ann, DEEP) == []
    assert await tables(lake, ann, DEEP) == ["d"]
    assert await tables(lake, ann, NS) == []
    assert await views(lake, ann, NS) == []


async def test_what_is_granted_on_a_namespace_shows_all_that_is_in_it(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_LIST))

    assert await namespaces(lake, ann) == [NS]
    assert await namespaces(lake, ann, NS) == [DEEP]
    assert await tables(lake, ann, NS) == ["t"]
    assert await views(lake, ann, NS) == []


async def test_a_view_is_shown_to_who_may_see_it(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_view(V, P.VIEW_LIST))

    assert await namespaces(lake, ann) == [NS]
    assert await views(lake, ann, NS) == ["v"]
    assert await tables(lake, ann, NS) == []


async def test_where_all_of_a_kind_may_be_listed_every_namespace_is_shown(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.TABLE_LIST))

    assert await namespaces(lake, ann) == [NS, OTHER]


async def test_a_right_that_lets_one_see_nothing_shows_nothing(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_DROP))

    assert await namespaces(lake, ann) == []


async def test_a_place_where_nothing_is_seen_is_refused_as_without_filtering(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))
    nobody = await lake.people.add("nobody")
    hidden = NoSuchNamespace if lake.directory.shared.access.hide_existence else AccessDenied

    with pytest.raises(hidden):
        await tables(lake, ann, OTHER)
    with pytest.raises(hidden):
        await namespaces(lake, ann, OTHER)
    with pytest.raises(NoSuchNamespace):
        await tables(lake, ann, ("missing",))
    with pytest.raises(AccessDenied):
        await namespaces(lake, nobody)


async def test_names_are_those_of_the_moment(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))

    await rename_table(lake.catalog, ROOT, T, Identifier(OTHER, "moved"))
    assert await namespaces(lake, ann) == [OTHER]
    assert await tables(lake, ann, OTHER) == ["moved"]

    await drop_table(lake.catalog, ROOT, Identifier(OTHER, "moved"))
    assert await namespaces(lake, ann) == []


async def test_pages_of_a_filtered_list_are_complete_in_order_and_of_one_moment(lake: Lake) -> None:
    names = [f"t{number:02}" for number in range(11)]
    for name in names:
        await make(lake.catalog, Identifier(NS, name))
    seen = [name for number, name in enumerate(names) if number % 2]
    grants = [grant for name in seen for grant in on_table(Identifier(NS, name), P.TABLE_LIST)]
    ann = await lake.people.add("ann", lake.catalog, *grants)

    listed: list[str] = []
    token: str | None = ""
    while token is not None:
        answer = msgspec.json.decode(await list_tables(lake.catalog, ann, NS, Paging(token, 2)))
        assert len(answer["identifiers"]) <= 2
        listed += [each["name"] for each in answer["identifiers"]]
        token = answer.get("next-page-token")
        # Not of the moment of the first page.
        await make(lake.catalog, Identifier(NS, f"later{len(listed)}"))

    assert listed == seen


async def test_a_list_goes_on_where_it_was_when_rights_change_between_pages(lake: Lake) -> None:
    for name in ("a", "b", "c"):
        await make(lake.catalog, Identifier(NS, name))
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_LIST))
    first = msgspec.json.decode(await list_tables(lake.catalog, ann, NS, Paging("", 2)))
    await lake.people.grant("ann", lake.catalog, *on_table(Identifier(NS, "c"), P.TABLE_LIST))
    await lake.people.revoke("ann", lake.catalog, *on_namespace(NS, P.TABLE_LIST))

    second = msgspec.json.decode(
        await list_tables(lake.catalog, ann, NS, Paging(first["next-page-token"], 2))
    )

    assert [each["name"] for each in first["identifiers"]] == ["a", "b"]
    assert [each["name"] for each in second["identifiers"]] == ["c"]


async def test_one_callers_list_is_not_anothers(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))
    await make(lake.catalog, Identifier(NS, "more"))

    assert await tables(lake, ann, NS) == ["t"]
    assert await tables(lake, ROOT, NS) == ["more", "t"]
    assert await tables(lake, ann, NS) == ["t"]


async def test_catalogs_are_shown_to_those_who_have_a_role_in_them(lake: Lake) -> None:
    for name in ("a", "b", "z"):
        await make_catalog(lake.directory, lake.folder, name)
    ann = await lake.people.add("ann", lake.catalog)
    await lake.people.join("ann", await lake.directory.open(ROOT.realm, "z"))
    nobody = await lake.people.add("nobody")

    assert [each.name for each in (await list_catalogs(lake.directory, ann)).catalogs] == ["lake", "z"]
    assert (await list_catalogs(lake.directory, nobody)).catalogs == []
    first = await list_catalogs(lake.directory, ann, Paging("", 1))
    assert [each.name for each in first.catalogs] == ["lake"]
    assert first.next_token is not None
    second = await list_catalogs(lake.directory, ann, Paging(first.next_token, 1))
    assert ([each.name for each in second.catalogs], second.next_token) == (["z"], None)
    whole = await list_catalogs(lake.directory, await lake.people.root())
    assert [each.name for each in whole.catalogs] == ["a", "b", "lake", "z"]


async def test_without_filtering_such_lists_are_refused(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))

        with pytest.raises(AccessDenied):
            await tables(lake, ann, NS)
        with pytest.raises(AccessDenied):
            await namespaces(lake, ann)
        with pytest.raises(AccessDenied):
            await list_catalogs(lake.directory, ann)


async def test_a_forged_token_is_refused(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_LIST))
    await create_namespace(lake.catalog, ROOT, ("x",), {})

    with pytest.raises(BadPageToken):
        await list_tables(lake.catalog, ann, NS, Paging("forged", 2))
