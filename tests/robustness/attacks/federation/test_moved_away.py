"""A remote renames a table, and nobody sees more by it: neither by a grant on a name, nor without a filter.

Whichever of the two names is looked at first. Holds I112, I113.
"""

from typing import Final

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.policies.placing import AttachTo
from cynosure.federation.operations import FederatedOperations
from cynosure.testing.small_access import P, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT
from tests.federation.mirror.test_waiting import load
from tests.federation.seen_world import NS, OTHER_UUID, Far, T

pytestmark = pytest.mark.anyio

SECRET: Final = Identifier(NS, "secret")
OTHER_NS: Final = ("other",)
ELSEWHERE: Final = Identifier(OTHER_NS, "orders")
BELOW: Final = Identifier((*NS, "below"), "orders")
POLICY: Final = Identifier(("gov",), "own-rows")
MASKED: Final = Identifier(("gov",), "no-words")

either_first = pytest.mark.parametrize("is_new_first", [False, True], ids=["old-name", "new-name"])


async def filter_rows(far: Far, *namespaces: Namespace, policy: Identifier = POLICY) -> Caller:
    """A filter on namespaces, and somebody who may read all tables, as far as it lets them."""
    for namespace in (policy.namespace, *namespaces):
        far.remote.namespaces.setdefault(namespace, {})
        await far.federation.see_namespace(far.catalog, ROOT, namespace, is_fresh=True)
    kind, content = "cynosure.row-filter", {"enable": True, "filter": "data = current_user()"}
    if policy is MASKED:
        kind, content = "cynosure.column-mask", {"enable": True, "columns": {"word": "mask-alphanum"}}
    wanted = CreatePolicy(policy, kind, msgspec.json.encode(content).decode())
    await create_policy(far.catalog, ROOT, wanted)
    for namespace in namespaces:
        await attach_policy(far.catalog, ROOT, policy, AttachTo("namespace", namespace))
    return await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_READ_DATA))


def rename(far: Far, target: Identifier) -> None:
    """Somebody renames the table at the remote."""
    for depth in range(1, len(target.namespace) + 1):
        far.remote.namespaces.setdefault(target.namespace[:depth], {})
    far.remote.tables[target] = far.remote.tables.pop(T)


@either_first
async def test_who_may_read_what_has_a_name_does_not_read_where_it_went(far: Far, is_new_first: bool) -> None:
    await far.set_properties(grants="by-name")
    far.put()
    await far.federation.see_to_grant(far.catalog, ROOT, T)
    bob = await far.people.add("bob", far.catalog, *on_table(T, P.TABLE_READ_DATA))
    await load(far, bob)
    before = await far.id_of()
    rename(far, SECRET)
    far.put(at="anew", uuid=OTHER_UUID)

    for table in (SECRET, T) if is_new_first else (T, SECRET):
        await far.see(table=table)

    assert (await far.id_of(), await far.id_of(SECRET) == before) == (before, False)
    await load(far, bob)
    with pytest.raises(NoSuchTable):
        await load(far, bob, SECRET)
    assert await far.disagreements() == []


async def test_a_table_that_comes_to_a_name_that_is_granted_on_leaves_nothing_behind(far: Far) -> None:
    await far.set_properties(grants="by-name")
    far.put(SECRET, at="anew", uuid=OTHER_UUID)
    await far.federation.see_to_grant(far.catalog, ROOT, SECRET)
    await far.see(table=SECRET)
    far.put()
    await far.see()
    rename(far, SECRET)

    await far.see(table=SECRET)

    assert await far.disagreements() == []


@either_first
async def test_a_filter_of_the_namespace_goes_with_a_table_that_is_taken_out(
    far: Far, is_new_first: bool
) -> None:
    far.put()
    ann = await filter_rows(far, NS)
    before = await load(far, ann)
    assert before is not None
    rename(far, ELSEWHERE)

    await far.see(table=ELSEWHERE if is_new_first else T)

    assert await load(far, ann, ELSEWHERE) == before
    assert await far.disagreements() == []
    await detach_policy(far.catalog, ROOT, POLICY, AttachTo("table-like", (*OTHER_NS, "orders")))
    assert await load(far, ann, ELSEWHERE) is None


@either_first
@pytest.mark.parametrize("target", [ELSEWHERE, BELOW, SECRET], ids=["beside", "below", "inside"])
async def test_where_the_filter_is_too_it_is_not_attached_once_more(
    far: Far, target: Identifier, is_new_first: bool
) -> None:
    far.put()
    ann = await filter_rows(far, NS, OTHER_NS)
    before = await load(far, ann)
    rename(far, target)

    await far.see(table=target if is_new_first else T)

    assert await load(far, ann, target) == before
    for namespace in (NS, OTHER_NS):
        await detach_policy(far.catalog, ROOT, POLICY, AttachTo("namespace", namespace))
    assert await load(far, ann, target) is None


async def test_a_table_that_comes_back_is_under_what_its_namespace_has_then(far: Far) -> None:
    far.put()
    ann = await filter_rows(far, NS)
    gone = far.remote.tables.pop(T)
    await far.see()
    await detach_policy(far.catalog, ROOT, POLICY, AttachTo("namespace", NS))
    far.remote.tables[T] = gone

    assert await load(far, ann) is None


async def test_who_renames_it_here_takes_it_out_as_in_a_catalog_of_our_own(far: Far) -> None:
    far.put()
    ann = await filter_rows(far, NS)
    assert await load(far, ann) is not None
    far.remote.namespaces[OTHER_NS] = {}
    await FederatedOperations(far.federation).rename_table(far.catalog, ROOT, T, ELSEWHERE)

    assert await load(far, ann, ELSEWHERE) is None


async def test_a_mask_of_a_column_that_a_table_has_not_hides_it_no_more_than_before(far: Far) -> None:
    far.put()
    ann = await filter_rows(far, NS, policy=MASKED)
    assert await load(far, ann) is None
    rename(far, ELSEWHERE)

    assert await load(far, ann, ELSEWHERE) is None
