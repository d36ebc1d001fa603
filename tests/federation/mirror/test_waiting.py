"""Row filters and masks of a table that its remote drops, renames or makes anew: nobody sees more by that.

Holds I113.
"""

from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.policies.placing import AttachTo
from cynosure.federation.mirror.waiting import Waiting
from cynosure.persistence.spi import ObjId
from cynosure.testing.small_access import P, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T

pytestmark = pytest.mark.anyio

MOVED = Identifier(NS, "moved")
FILTER, MASK = Identifier(NS, "own-rows"), Identifier(NS, "no-data")
CONTENTS: dict[Identifier, tuple[str, dict[str, Any]]] = {
    FILTER: ("cynosure.row-filter", {"filter": "data = current_user()"}),
    MASK: ("cynosure.column-mask", {"columns": {"data": "mask-alphanum"}}),
}
OTHER_COLUMNS = [
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "word", "required": False, "type": "string"},
        ],
    }
]
MOVED_IDS = [
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "data", "required": False, "type": "string"},
            {"id": 2, "name": "id", "required": True, "type": "long"},
        ],
    }
]


async def restrict(far: Far, path: Identifier = FILTER, table: Identifier = T) -> None:
    kind, content = CONTENTS[path]
    text = msgspec.json.encode({"enable": True, **content}).decode()
    await create_policy(far.catalog, ROOT, CreatePolicy(path, kind, text))
    await attach_policy(far.catalog, ROOT, path, AttachTo("table-like", (*table.namespace, table.name)))


async def add_reader(far: Far) -> Caller:
    """Somebody with rights on the whole catalog, which count for every table that comes."""
    return await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_READ_DATA))


async def load(far: Far, caller: Caller, table: Identifier = T) -> dict[str, Any] | None:
    """What loading says about restrictions."""
    await far.federation.see_table(far.catalog, caller, table, is_fresh=True)
    answer = await load_table(far.catalog, caller, table)
    found: dict[str, Any] | None = msgspec.json.decode(answer.load_body()).get("read-restrictions")
    return found


@pytest.fixture
async def ann(far: Far) -> Caller:
    """A reader, and a table under a row filter."""
    far.put()
    await far.see()
    await restrict(far)
    return await add_reader(far)


async def test_a_table_made_anew_is_under_the_restrictions_of_the_one_before(far: Far, ann: Caller) -> None:
    before = await load(far, ann)
    far.put(uuid=OTHER_UUID)

    after = await load(far, ann)

    assert after == before
    assert after is not None
    assert await far.disagreements() == []


async def test_the_columns_are_found_by_name_in_the_table_made_anew(far: Far, ann: Caller) -> None:
    far.put(uuid=OTHER_UUID, schemas=MOVED_IDS)

    found = await load(far, ann)

    assert found is not None
    assert found["required-row-filter"]["right"]["value"] == "ann"


async def test_a_restriction_that_does_not_fit_the_table_made_anew_hides_it(far: Far, ann: Caller) -> None:
    far.put(uuid=OTHER_UUID, schemas=OTHER_COLUMNS)

    with pytest.raises(RestrictedByPolicy):
        await load(far, ann)
    far.put(uuid=OTHER_UUID, name="v2")
    # Somebody has to say that the column that came later is the one.
    with pytest.raises(RestrictedByPolicy):
        await load(far, ann)
    await attach_policy(far.catalog, ROOT, FILTER, AttachTo("table-like", (*NS, T.name)))
    assert await load(far, ann) is not None


async def test_a_mask_whose_column_is_gone_hides_the_table_made_anew(far: Far) -> None:
    far.put()
    await far.see()
    await restrict(far, MASK)
    ann = await add_reader(far)
    far.put(uuid=OTHER_UUID, schemas=OTHER_COLUMNS)

    with pytest.raises(RestrictedByPolicy):
        await load(far, ann)


async def test_restrictions_wait_while_the_table_is_gone(far: Far, ann: Caller) -> None:
    before = await load(far, ann)
    far.remote.tables.clear()
    await far.see()
    far.put(uuid=OTHER_UUID)

    assert await load(far, ann) == before
    assert await far.disagreements() == []


async def test_a_renamed_table_is_restricted_also_when_its_old_name_was_looked_at_first(
    far: Far, ann: Caller
) -> None:
    before = await load(far, ann)
    far.remote.tables[MOVED] = far.remote.tables.pop(T)
    await far.see()

    assert await load(far, ann, MOVED) == before
    assert await far.disagreements() == []


async def test_both_are_restricted_when_a_table_is_renamed_and_another_put_in_its_place(
    far: Far, ann: Caller
) -> None:
    before = await load(far, ann)
    far.remote.tables[MOVED] = far.remote.tables.pop(T)
    far.put(at="anew", uuid=OTHER_UUID)

    assert await load(far, ann) == before
    assert await load(far, ann, MOVED) == before
    assert await far.disagreements() == []


async def test_a_table_that_was_seen_before_takes_the_restrictions_with_the_name(
    far: Far, ann: Caller
) -> None:
    before = await load(far, ann)
    far.put(MOVED, at="anew", uuid=OTHER_UUID)
    assert await load(far, ann, MOVED) is None
    # What a build of the table anew looks like at the remote: one out of the way, the other into its place.
    backup = Identifier(NS, "backup")
    far.remote.tables[backup] = far.remote.tables.pop(T)
    far.remote.tables[T] = far.remote.tables.pop(MOVED)

    assert await load(far, ann) == before
    assert await load(far, ann, backup) == before
    assert await far.disagreements() == []


async def test_a_rename_leaves_the_restrictions_to_the_old_name_as_well(far: Far, ann: Caller) -> None:
    before = await load(far, ann)
    far.remote.tables[MOVED] = far.remote.tables.pop(T)
    assert await load(far, ann, MOVED) == before
    far.put(at="anew", uuid=THIRD_UUID)

    assert await load(far, ann) == before


async def test_a_policy_that_was_dropped_or_detached_waits_for_nothing(far: Far, ann: Caller) -> None:
    await restrict(far, MASK)
    await detach_policy(far.catalog, ROOT, FILTER, AttachTo("table-like", (*NS, T.name)))
    far.remote.tables.clear()
    await far.see()
    await drop_policy(far.catalog, ROOT, MASK, is_detaching=True)
    far.put(uuid=OTHER_UUID)

    assert await load(far, ann) is None
    assert await far.disagreements() == []


async def test_grants_do_not_count_for_the_table_that_replaces_theirs(far: Far) -> None:
    far.put()
    await far.see()
    await restrict(far)
    bob = await far.people.add("bob", far.catalog, *on_table(T, P.TABLE_READ_DATA))
    assert await load(far, bob) is not None
    far.put(uuid=OTHER_UUID)

    with pytest.raises(Exception, match="not exist"):
        await load(far, bob)


async def test_a_namespace_made_anew_is_under_the_restrictions_of_the_one_before(far: Far) -> None:
    far.put()
    await far.see()
    policies = Identifier(("gov",), FILTER.name)
    far.remote.namespaces["gov",] = {}
    await far.federation.see_namespace(far.catalog, ROOT, ("gov",))
    kind, content = CONTENTS[FILTER]
    text = msgspec.json.encode({"enable": True, **content}).decode()
    await create_policy(far.catalog, ROOT, CreatePolicy(policies, kind, text))
    await attach_policy(far.catalog, ROOT, policies, AttachTo("namespace", NS))
    ann = await add_reader(far)
    before = await load(far, ann)
    assert before is not None

    far.remote.tables.clear()
    del far.remote.namespaces[NS]
    await far.federation.see_namespace(far.catalog, ROOT, NS, is_fresh=True)
    assert await far.disagreements() == []
    far.put(uuid=OTHER_UUID)

    assert await load(far, ann) == before
    assert await far.disagreements() == []


def test_what_waits_is_stored_as_it_was_and_old_entries_can_be_read() -> None:
    golden = bytes.fromhex("919407a3616e6e81a161a16209")
    waiting = [Waiting(ObjId(7), "ann", {"a": "b"}, 9)]

    assert msgspec.msgpack.encode(waiting) == golden
    assert msgspec.msgpack.decode(golden, type=list[Waiting]) == waiting
    assert msgspec.msgpack.decode(b"\x91\x91\x07", type=list[Waiting]) == [Waiting(ObjId(7))]
