"""Lists of what remotes have: rights first, then their pages behind our tokens (I111)."""

import gc
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadPageToken, TooLarge
from cynosure.federation import lists
from cynosure.federation.errors import RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.mirror import backfill_namespace
from cynosure.federation.turning import Turning
from cynosure.testing.small_access import P, People, on_catalog, on_namespace
from cynosure.testing.small_catalog import ROOT, open_directory_in
from tests.federation.federated import make_federated
from tests.federation.listed_remote import ListedRemote
from tests.federation.seen_world import OTHER_UUID, Far

pytestmark = pytest.mark.anyio

NS = ("ns",)


class World(NamedTuple):
    catalog: OpenCatalog
    other: OpenCatalog
    people: People


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_directory_in(tmp_path, access=AuthSettings(filter_lists=True)) as directory:
        people = People(directory)
        await people.root()
        catalog = await make_federated(directory, tmp_path)
        yield World(catalog, await make_federated(directory, tmp_path, "farther"), people)


async def page(
    remote: ListedRemote,
    catalog: OpenCatalog,
    caller: Caller,
    token: str | None = "",
    size: int | None = None,
) -> Any:
    paging = Paging(token=token, size=size)
    return msgspec.json.decode(await lists.list_tables(remote, catalog, caller, NS, paging))


async def pages(
    remote: ListedRemote, catalog: OpenCatalog, caller: Caller, size: int
) -> list[tuple[list[str], str | None]]:
    found: list[tuple[list[str], str | None]] = []
    token: str | None = ""
    while token is not None:
        answer = await page(remote, catalog, caller, token, size)
        token = answer.get("next-page-token")
        found.append(([each["name"] for each in answer["identifiers"]], token))
    return found


async def test_ten_thousand_tables_are_listed_in_pages_of_the_remote(world: World) -> None:
    remote = ListedRemote(10_000)

    found = await pages(remote, world.catalog, ROOT, 500)

    assert [len(names) for names, _ in found] == [500] * 20
    assert [name for names, _ in found for name in names] == [f"t{number:05}" for number in range(10_000)]
    assert [size for _, size in remote.asked] == [500] * 20


async def test_no_more_than_a_page_of_them_is_held(world: World) -> None:
    remote = ListedRemote(10_000)
    answer = await page(remote, world.catalog, ROOT, size=200)  # what is made once is not what a page costs
    gc.collect()
    tracemalloc.start()
    try:
        while (token := answer.get("next-page-token")) is not None:
            answer = await page(remote, world.catalog, ROOT, token, 200)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(remote.asked) == 50
    # All names at once would be several times as much.
    assert most < 2**19


async def test_a_list_that_is_wanted_whole_is_asked_for_in_pages(world: World) -> None:
    remote = ListedRemote(2_500)

    answer = await page(remote, world.catalog, ROOT, None)

    assert len(answer["identifiers"]) == 2_500
    assert "next-page-token" not in answer
    assert len(remote.asked) == 3


async def test_a_remote_that_knows_no_pages_is_cut_into_some(world: World) -> None:
    remote = ListedRemote(25)
    remote.is_ignoring_size = True

    found = await pages(remote, world.catalog, ROOT, 10)

    assert [len(names) for names, _ in found] == [10, 10, 5]
    assert len({name for names, _ in found for name in names}) == 25


async def test_a_token_is_good_for_one_list_of_one_remote(world: World) -> None:
    remote = ListedRemote(25)
    token = (await page(remote, world.catalog, ROOT, size=10))["next-page-token"]
    remote.asked.clear()

    with pytest.raises(BadPageToken):
        await page(remote, world.other, ROOT, token, 10)
    with pytest.raises(BadPageToken):
        await lists.list_views(remote, world.catalog, ROOT, NS, Paging(token, 10))
    with pytest.raises(BadPageToken):
        await page(remote, world.catalog, ROOT, "20", 10)
    assert remote.asked == []


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "in pages"])
async def test_tokens_that_go_round_in_circles_end(world: World, length: int, is_whole: bool) -> None:
    remote = ListedRemote()
    circle = [str(number) for number in range(length)]
    remote.next_tokens = {None: "0"} | {each: circle[(at + 1) % length] for at, each in enumerate(circle)}
    listing = page(remote, world.catalog, ROOT, None) if is_whole else pages(remote, world.catalog, ROOT, 10)

    with pytest.raises(RemoteMisbehaved):
        await listing
    assert len(remote.asked) <= 4 * length + 2


async def test_tokens_that_are_all_new_are_followed() -> None:
    turning: Turning | None = Turning()
    for number in range(5_000):
        turning = turning.follow(f"token {number}")
        assert turning is not None


@pytest.mark.parametrize("names", [(), ("..", "a\x1fb")], ids=["none", "none that can be one here"])
async def test_a_list_without_names_that_does_not_end_ends(world: World, names: Sequence[str]) -> None:
    remote = ListedRemote()

    async def ask(namespace: Namespace, *, token: str | None, size: int) -> lists.NamesPage:
        remote.asked.append((token, size))
        return lists.NamesPage(names, str(len(remote.asked)))

    remote.list_tables = ask

    with pytest.raises(RemoteMisbehaved):
        await page(remote, world.catalog, ROOT, None)
    assert len(remote.asked) == 100


async def test_a_list_that_no_answer_can_hold_must_be_asked_for_in_pages(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "_MOST_BYTES", 10_000)

    with pytest.raises(TooLarge):
        await page(ListedRemote(5_000), world.catalog, ROOT, None)


async def test_names_that_cannot_be_names_here_are_left_out(world: World) -> None:
    remote = ListedRemote(1)
    remote.extra = ["", "..", "a\x1fb", "x" * 300, "\ud800", "t00000", 'qu"ote']

    answer = await page(remote, world.catalog, ROOT, None)

    assert [each["name"] for each in answer["identifiers"]] == ["t00000", 'qu"ote']


async def test_a_remote_without_views_is_not_asked_for_any(world: World) -> None:
    remote = ListedRemote(has_views=False)

    answer = await lists.list_views(remote, world.catalog, ROOT, NS, Paging())
    with pytest.raises(NoSuchNamespace):
        await lists.list_views(remote, world.catalog, ROOT, ("gone",), Paging())

    assert (answer, remote.asked) == (b'{"identifiers":[]}', [])


async def test_who_may_list_the_catalog_lists_what_nobody_has_seen(world: World) -> None:
    ann = await world.people.add("ann", world.catalog, *on_catalog(P.TABLE_LIST, P.NAMESPACE_LIST))
    remote = ListedRemote(3)

    assert len((await page(remote, world.catalog, ann))["identifiers"]) == 3
    answer = await lists.list_namespaces(remote, world.catalog, ann, (), Paging())
    assert answer == b'{"namespaces":[["ns"]]}'


async def test_who_may_see_nothing_causes_no_request_and_learns_nothing(world: World) -> None:
    bob = await world.people.add("bob", world.catalog)
    remote = ListedRemote(3)
    await backfill_namespace(world.catalog, ROOT, NS, {})
    told = []
    for namespace in (NS, ("gone",)):
        for ask in (lists.list_tables, lists.list_views, lists.list_namespaces):
            with pytest.raises((AccessDenied, NoSuchNamespace)) as refused:
                await ask(remote, world.catalog, bob, namespace, Paging())
            told.append((ask, str(refused.value).replace(namespace[0], "*")))

    assert remote.asked == []
    assert told[:3] == told[3:]


async def test_who_may_see_some_is_shown_those_without_a_request(world: World) -> None:
    await backfill_namespace(world.catalog, ROOT, NS, {})
    await backfill_namespace(world.catalog, ROOT, ("unseen",), {})
    cat = await world.people.add("cat", world.catalog, *on_namespace(NS, P.TABLE_LIST))
    remote = ListedRemote(3)

    answer = await lists.list_namespaces(remote, world.catalog, cat, (), Paging())
    assert (answer, remote.asked) == (b'{"namespaces":[["ns"]]}', [])
    assert len((await page(remote, world.catalog, cat))["identifiers"]) == 3


async def test_while_the_remote_is_gone_there_are_no_lists_also_where_tables_are_shown(far: Far) -> None:
    """What was seen is not all there is: an engine takes the names that are left out for dropped."""
    far.put()
    far.put(Identifier(NS, "unseen"), "unseen", uuid=OTHER_UUID)
    await far.see()
    await far.set_properties(stale_if_down="10m")
    remotes = far.federation.clients
    far.remote.is_down = True
    await far.see()

    for paging in (Paging(), Paging(token="", size=10)):
        with pytest.raises(RemoteUnavailable):
            await lists.list_tables(remotes, far.catalog, ROOT, NS, paging)
        with pytest.raises(RemoteUnavailable):
            await lists.list_namespaces(remotes, far.catalog, ROOT, (), paging)
