"""What a migration writes down, as it is stored, and what is chosen for one."""

import msgspec
import pytest

from cynosure.auth.committing import commit_part
from cynosure.catalog.names import BEING_MOVED, Identifier
from cynosure.federation.handover import (
    INDEX,
    Chosen,
    Given,
    Moving,
    Taken,
    decode_taken,
    find_moving,
    noting_given,
)
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import Far

pytestmark = pytest.mark.anyio


async def test_marks_of_versions_that_knew_no_other_catalog_are_understood(far: Far) -> None:
    stored = msgspec.msgpack.encode([17, "taking", True, False, [["ns", "deep"]]])

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {INDEX: {BEING_MOVED: stored}})

    await commit_part(far.catalog.committer, ROOT, "as-it-was", prepare)

    found = await find_moving(await far.catalog.read())
    assert found == Moving(17, keeps_remote=True, namespaces=(("ns", "deep"),))
    assert (found.into, found.chosen) == ("", Chosen((("ns", "deep"),)))
    taken = msgspec.msgpack.encode(["aside", "uuid", True, False, False])
    assert decode_taken(taken) == Taken("aside", "uuid", is_held=True)


def test_who_got_something_is_stored_as_it_was() -> None:
    given = Given(CatalogId("17"), "uuid", 4711, ObjId(9))
    (stored,) = noting_given("table", Identifier(("a", "b"), "t"), given)[INDEX].items()

    assert stored == (b"given\x01table\x01a\x01b\x01t", bytes.fromhex("94a23137a475756964cd126709"))
    assert msgspec.msgpack.decode(stored[1], type=Given) == given


@pytest.mark.parametrize(
    ("chosen", "tables", "namespaces"),
    [
        (Chosen(), ["a.t", "a.b.t", "c.t"], ["a", "a.b", "c"]),
        (Chosen(namespaces=(("a", "b"),)), ["a.b.t"], ["a", "a.b"]),
        (Chosen(tables=(("a", "b", "t"),)), ["a.b.t"], ["a", "a.b"]),
        (Chosen((("c",),), (("a", "t"),)), ["a.t", "c.t"], ["a", "c"]),
    ],
)
def test_what_is_chosen(chosen: Chosen, tables: list[str], namespaces: list[str]) -> None:
    names = [Identifier(("a",), "t"), Identifier(("a", "b"), "t"), Identifier(("c",), "t")]

    assert [str(each) for each in names if chosen.has(each)] == tables
    paths = [("a",), ("a", "b"), ("c",)]
    assert [".".join(each) for each in paths if chosen.leads_to(each)] == namespaces
