"""A remote that does not mind how names are spelled: nobody gets around a restriction by another spelling."""

import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.policies.placing import AttachTo
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, Far, T, open_far
from tests.federation.served import BASE, client_of
from tests.robustness.attacks.federation.lax_remote import LaxRemote

pytestmark = pytest.mark.anyio

ALIAS = Identifier(("NS",), "orders")
SHOUTED = Identifier(NS, "ORDERS")
RULES = ("rules",)
FILTER = Identifier(RULES, "own-rows")


@pytest.fixture
async def far(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Far]:
    async with open_far(tmp_path / "files", clock=manual_clock, remote=LaxRemote()) as opened:
        opened.remote.home = opened.catalog.base.text
        yield opened


@pytest.fixture
async def ann(far: Far) -> Caller:
    """Somebody with rights on the whole catalog, which count for every table that comes."""
    return await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_READ_DATA))


async def load(far: Far, caller: Caller, table: Identifier) -> Any:
    """What loading says about restrictions. Not there: `"missing"`."""
    await far.federation.see_table(far.catalog, caller, table, is_fresh=True)
    try:
        answer = await load_table(far.catalog, caller, table)
    except NoSuchTable:
        return "missing"
    return msgspec.json.decode(answer.load_body()).get("read-restrictions")


async def is_shown(far: Far, table: Identifier) -> bool:
    return await load(far, ROOT, table) != "missing"


async def restrict(far: Far, kind: str, path: Namespace, *, home: Namespace = RULES) -> None:
    """Attach a row filter, which itself is in `home`."""
    far.remote.namespaces.setdefault(home, {})
    await far.federation.see_namespace(far.catalog, ROOT, home)
    content = msgspec.json.encode({"enable": True, "filter": "data = current_user()"}).decode()
    policy = Identifier(home, FILTER.name)
    await create_policy(far.catalog, ROOT, CreatePolicy(policy, "cynosure.row-filter", content))
    await attach_policy(far.catalog, ROOT, policy, AttachTo(kind, path))  # type: ignore[arg-type]


async def make_here(far: Far, namespace: str) -> None:
    async with client_of(far) as root:
        made = await root.post(f"{BASE}/v1/far/namespaces", json={"namespace": [namespace]})
        assert made.status_code == 200, made.text


async def test_another_spelling_of_a_namespace_is_none(far: Far) -> None:
    far.put()
    await far.federation.see_namespace(far.catalog, ROOT, NS)

    assert not await is_shown(far, ALIAS)
    assert await is_shown(far, T)


async def test_what_comes_first_under_another_spelling_is_not_there_either(far: Far) -> None:
    far.put()

    assert [await is_shown(far, each) for each in (ALIAS, SHOUTED, T)] == [False, False, True]
    assert await far.disagreements() == []


async def test_where_case_matters_both_are_there(tmp_path: Path, manual_clock: ManualClock) -> None:
    async with open_far(tmp_path / "strict", clock=manual_clock, remote=MemoryRemote()) as far:
        for number, each in enumerate((T, ALIAS, SHOUTED)):
            far.put(each, at=f"t{number}", uuid=f"{number}{OTHER_UUID[1:]}")

        assert [await is_shown(far, each) for each in (T, ALIAS, SHOUTED)] == [True, True, True]


async def test_where_case_matters_that_is_found_out_once(tmp_path: Path, manual_clock: ManualClock) -> None:
    async with open_far(tmp_path / "strict", clock=manual_clock, remote=MemoryRemote()) as far:
        tables = [Identifier(NS, f"t{number}") for number in range(3)]
        for number, each in enumerate(tables):
            far.put(each, at=each.name, uuid=f"{number}{OTHER_UUID[1:]}")

        await far.see(table=tables[0])
        assert far.remote.asked == ["load-table", "load-namespace", "load-table"]
        far.remote.asked.clear()
        for each in tables[1:]:
            await far.see(table=each)
        assert far.remote.asked == ["load-table", "load-table"]


@pytest.mark.parametrize("at", ["orders", "elsewhere"])
async def test_a_table_made_anew_is_restricted_in_any_spelling(far: Far, ann: Caller, at: str) -> None:
    far.put()
    await far.see()
    await restrict(far, "table-like", (*NS, T.name))
    before = await load(far, ann, T)
    assert before not in (None, "missing")
    far.put(at=at, uuid=OTHER_UUID)

    assert await load(far, ann, SHOUTED) == "missing"
    assert await load(far, ann, ALIAS) == "missing"
    assert await load(far, ann, T) == before


async def test_what_waits_for_a_name_is_not_left_behind_by_another_spelling(far: Far, ann: Caller) -> None:
    far.put()
    await far.see()
    await restrict(far, "table-like", (*NS, T.name))
    before = await load(far, ann, T)
    del far.remote.tables[T]
    assert await load(far, ann, T) == "missing"
    far.put(at="elsewhere", uuid=OTHER_UUID)

    assert await load(far, ann, SHOUTED) == "missing"
    assert await load(far, ann, T) == before


@pytest.mark.parametrize("is_gone_between", [False, True])
async def test_a_table_that_its_owner_makes_anew_in_another_spelling_is_restricted(
    far: Far, ann: Caller, *, is_gone_between: bool
) -> None:
    far.put(SHOUTED)
    await far.see(table=SHOUTED)
    await restrict(far, "table-like", (*NS, SHOUTED.name))
    before = await load(far, ann, SHOUTED)
    assert before not in (None, "missing")
    del far.remote.tables[SHOUTED]
    if is_gone_between:
        assert await load(far, ann, SHOUTED) == "missing"
    far.put(at="elsewhere", uuid=OTHER_UUID)

    assert await load(far, ann, T) == before
    assert await load(far, ann, SHOUTED) == "missing"
    assert await far.disagreements() == []


@pytest.mark.parametrize("home", [RULES, ("NS",)])
@pytest.mark.parametrize("is_at_the_remote", [False, True])
async def test_what_is_attached_to_a_misspelled_namespace_counts_for_the_right_one(
    far: Far, ann: Caller, home: Namespace, *, is_at_the_remote: bool
) -> None:
    """The remote made `ns` of the `NS` that it was asked for; or had that, and was changed."""
    if is_at_the_remote:
        far.remote.namespaces["NS",] = {}
        await far.federation.see_namespace(far.catalog, ROOT, ("NS",))
    else:
        await make_here(far, "NS")
    await restrict(far, "namespace", ("NS",), home=home)
    far.remote.namespaces.clear()
    far.put()

    assert await load(far, ann, T) not in (None, "missing")
    assert await load(far, ann, ALIAS) == "missing"
    assert await far.disagreements() == []


async def test_what_is_attached_below_a_misspelled_namespace_counts_there(far: Far, ann: Caller) -> None:
    far.remote.namespaces["NS",] = {}
    deep, table = ("NS", "deep"), Identifier(("NS", "deep"), "t")
    far.put(table, at="t")
    far.put(ALIAS)
    await far.see(table=table)
    await far.see(table=ALIAS)
    await restrict(far, "namespace", deep)
    await attach_policy(far.catalog, ROOT, FILTER, AttachTo("table-like", ("NS", "orders")))
    far.remote.namespaces.clear()
    far.remote.tables.clear()
    far.put(Identifier(("ns", "deep"), "t"), at="t", uuid=OTHER_UUID)
    far.put(at="anew", uuid=f"7{OTHER_UUID[1:]}")

    assert await load(far, ann, Identifier(("ns", "deep"), "t")) not in (None, "missing")
    assert await load(far, ann, T) not in (None, "missing")
    assert await far.disagreements() == []


async def test_a_name_that_was_granted_on_does_not_make_its_spelling_right(far: Far, ann: Caller) -> None:
    await far.set_properties(grants="by-name")
    far.put()
    for each in (ALIAS, SHOUTED):
        await far.federation.see_to_grant(far.catalog, ROOT, each)
    await far.federation.see_namespace(far.catalog, ROOT, NS)
    await restrict(far, "namespace", NS)

    assert [await load(far, ann, each) for each in (ALIAS, SHOUTED)] == ["missing", "missing"]
    assert await load(far, ann, T) not in (None, "missing")


def without_accents(name: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))


@pytest.mark.parametrize(
    ("fold", "asked"),
    [
        (lambda name: without_accents(name).lower(), "ÖrDers"),
        (lambda name: without_accents(name).lower(), "örders"),
        (str.rstrip, "orders "),
        (lambda name: unicodedata.normalize("NFKC", name), "\uff4frders"),
    ],
)
async def test_accents_spaces_and_wide_letters_are_spellings_too(
    tmp_path: Path, manual_clock: ManualClock, fold: Callable[[str], str], asked: str
) -> None:
    async with open_far(tmp_path / "lax", clock=manual_clock, remote=LaxRemote(fold)) as far:
        far.put()

        assert not await is_shown(far, Identifier(NS, asked))
        assert await is_shown(far, T)


async def test_what_is_found_out_of_odd_names_is_not_taken_for_plain_ones(
    tmp_path: Path, manual_clock: ManualClock
) -> None:
    def fold(name: str) -> str:
        """As databases do that know plain letters only."""
        return "".join(each.lower() if each.isascii() else each for each in name).rstrip()

    async with open_far(tmp_path / "lax", clock=manual_clock, remote=LaxRemote(fold)) as far:
        far.put()
        odd = [Identifier(NS, name) for name in ("Ä", "äÖ", "1é")]
        for number, each in enumerate(odd):
            far.put(each, at=f"t{number}", uuid=f"{number}{OTHER_UUID[1:]}")

        assert [await is_shown(far, each) for each in odd] == [True] * 3
        assert not await is_shown(far, SHOUTED)
        assert not await is_shown(far, Identifier(NS, "orders "))


async def test_a_table_can_be_given_another_spelling_and_keeps_what_is_attached(
    far: Far, ann: Caller
) -> None:
    far.put()
    await far.see()
    await restrict(far, "table-like", (*NS, T.name))
    before = await load(far, ann, T)
    found = far.remote.tables.pop(T)
    far.remote.tables[SHOUTED] = found

    assert await load(far, ann, SHOUTED) == before
    assert await load(far, ann, T) == "missing"


@pytest.mark.parametrize("path", ["namespaces/NS/tables/orders", "namespaces/ns/tables/ORDERS"])
async def test_nothing_can_be_had_or_done_under_another_spelling(far: Far, path: str) -> None:
    far.put()
    await far.see()
    base = f"{BASE}/v1/far"
    named = {"namespace": [path.split("/")[1]], "name": path.split("/")[3]}
    async with client_of(far) as root:
        answers = [
            await root.get(f"{base}/{path}"),
            await root.get(f"{base}/{path}/credentials"),
            await root.post(f"{base}/{path}/plan", json={}),
            await root.post(f"{base}/{path}", json={"requirements": [], "updates": []}),
            await root.delete(f"{base}/{path}"),
            await root.delete(f"{base}/{path}?purgeRequested=true"),
            await root.post(
                f"{base}/tables/rename",
                json={"source": named, "destination": {"namespace": ["ns"], "name": "t"}},
            ),
        ]

    assert [each.status_code for each in answers] == [404] * len(answers), [each.text for each in answers]
    assert [*far.remote.tables] == [T]


async def test_a_registration_over_another_spelling_replaces_nothing(far: Far) -> None:
    found = far.put()
    await far.see()
    bob = await far.people.add("bob", far.catalog, *on_catalog(P.TABLE_CREATE, P.TABLE_LIST))
    other = far.put(Identifier(NS, "other"), at="other", uuid=OTHER_UUID)
    async with client_of(far, bob) as http:
        answer = await http.post(
            f"{BASE}/v1/far/namespaces/ns/register",
            json={"name": "ORDERS", "metadata-location": other.tag.metadata_location, "overwrite": True},
        )

    assert answer.status_code in (403, 404, 409), answer.text
    assert far.remote.tables[T] == found
