"""A table that was loaded before is given again only while all of that rests on the same heads."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations import load_table as loading
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.load_table import ForData, load_table, load_table_for_data
from cynosure.catalog.resolve import find_table_ref
from cynosure.persistence.commit import View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import EVERYTHING, TABLE, restrict, restrictions_in
from tests.catalog.tables import T, decoded
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio


class Reader:
    """Somebody who asks as a request of a server does; counts how often the name is looked up."""

    def __init__(self, lake: Lake, caller: Caller) -> None:
        self.lake, self.caller = lake, caller
        self.lookups = 0

    async def load(self) -> ForData:
        """Both ways: for a client that wants the files, and for one that does not."""
        self._read_ahead()
        plain = await load_table(self.lake.catalog, self.caller, T)
        self._read_ahead()
        given = await load_table_for_data(self.lake.catalog, self.caller, T)
        assert decoded(given.answer) == decoded(plain)
        assert restrictions_in(given.answer) == restrictions_in(plain)
        return given

    def _read_ahead(self) -> None:
        catalog = self.lake.catalog
        principals = realm_reference(catalog.realm, "principals")
        catalog.shared.persistence.heads.read_ahead((principals, principals, *catalog.likely_references))


@pytest.fixture
async def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reader]:
    async with open_lake(tmp_path) as lake:
        made = Reader(lake, await lake.people.add("ann", lake.catalog, *EVERYTHING))

        async def counted(view: View, table: Identifier) -> ObjRef | None:
            made.lookups += 1
            return await find_table_ref(view, table)

        monkeypatch.setattr(loading, "find_table_ref", counted)
        yield made


async def test_while_nothing_changes_the_name_is_looked_up_once(reader: Reader) -> None:
    given = [await reader.load() for _ in range(3)]

    assert reader.lookups == 2  # once each way
    assert [each.is_writable for each in given] == [True] * 3


async def test_a_version_that_is_not_in_memory_any_more_is_loaded_again(reader: Reader) -> None:
    before = await reader.load()
    reader.lake.catalog.shared.tables.clear()

    after = await reader.load()

    assert decoded(after.answer) == decoded(before.answer)


async def test_a_policy_that_is_attached_or_detached_counts_with_the_next_load(reader: Reader) -> None:
    assert (await reader.load()).is_writable

    policy = await restrict(reader.lake, "few", TABLE, filter="id = 7")
    restricted = await reader.load()
    await detach_policy(reader.lake.catalog, ROOT, policy, TABLE)

    assert restrictions_in(restricted.answer) is not None
    assert not restricted.is_writable
    assert (await reader.load()).is_writable


async def test_who_may_not_see_all_of_a_table_is_looked_at_every_time(reader: Reader) -> None:
    await restrict(reader.lake, "few", TABLE, filter="id = 7")

    given = [await reader.load() for _ in range(3)]

    assert reader.lookups == 6
    assert all(restrictions_in(each.answer) is not None for each in given)
