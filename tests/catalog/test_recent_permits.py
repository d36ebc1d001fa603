"""A permission that was found before is used only while everything it rests on is the same."""

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import ForData, load_table, load_table_for_data
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.common.errors import NotAuthenticated
from cynosure.persistence.references import realm_reference
from cynosure.testing.small_access import P, People, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio
RIGHT = on_table(T, P.TABLE_READ_PROPERTIES)


class Reader:
    """Somebody who may load one table, and asks as a request of a server does."""

    def __init__(self, catalog: OpenCatalog, people: People, caller: Caller) -> None:
        self.catalog, self.people, self.caller = catalog, people, caller
        self.decisions = 0

    async def load(self, table: Identifier = T) -> TableAnswer:
        self._read_ahead()
        return await load_table(self.catalog, self.caller, table)

    async def load_for_data(self) -> ForData:
        self._read_ahead()
        return await load_table_for_data(self.catalog, self.caller, T)

    def _read_ahead(self) -> None:
        heads = self.catalog.shared.persistence.heads
        principals = realm_reference(self.catalog.realm, "principals")
        heads.read_ahead((principals, principals, *self.catalog.likely_references))


@pytest.fixture
async def reader(catalog: OpenCatalog, directory, monkeypatch: pytest.MonkeyPatch) -> Reader:
    people = People(directory)
    await make(catalog)
    made = Reader(catalog, people, await people.add("ann", catalog, *RIGHT))
    decide = catalog.shared.authorizer.decide

    async def counted(*args: object, **options: object) -> object:
        made.decisions += 1
        return await decide(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog.shared.authorizer, "decide", counted)
    return made


async def test_while_nothing_changes_it_is_decided_once(reader: Reader) -> None:
    answers = [await reader.load() for _ in range(3)]

    assert reader.decisions == 1
    assert len({answer.etag for answer in answers}) == 1


async def test_a_revoked_right_counts_with_the_next_load(reader: Reader) -> None:
    await reader.load()
    await reader.people.revoke("ann", reader.catalog, *RIGHT)

    with pytest.raises(AccessDenied):
        await reader.load()


async def test_a_principal_that_is_gone_loads_nothing_any_more(reader: Reader) -> None:
    await reader.load()
    await delete_principal(reader.people.identities, ROOT, "ann")

    with pytest.raises(NotAuthenticated):
        await reader.load()


async def test_a_new_version_is_what_is_loaded_next(reader: Reader) -> None:
    before = await reader.load()
    await change(reader.catalog, properties(k="v"))

    after = await reader.load()

    assert decoded(after)["properties"]["k"] == "v"
    assert after.etag != before.etag


async def test_what_has_the_name_now_is_not_what_was_allowed_before(reader: Reader) -> None:
    await reader.load()
    await rename_table(reader.catalog, ROOT, T, Identifier(T.namespace, "moved"))
    with pytest.raises(NoSuchTable):
        await reader.load()
    await make(reader.catalog)

    with pytest.raises(AccessDenied):
        await reader.load()
    await reader.load(Identifier(T.namespace, "moved"))


async def test_somebody_else_does_not_load_what_one_was_allowed(reader: Reader) -> None:
    await reader.load()
    other = await reader.people.add("bob", reader.catalog)
    bob = Reader(reader.catalog, reader.people, other)

    with pytest.raises(AccessDenied):
        await bob.load()


async def test_a_dropped_table_is_missing(reader: Reader) -> None:
    await reader.load()
    await drop_table(reader.catalog, ROOT, T)

    with pytest.raises(NoSuchTable):
        await reader.load()


# --- of several, the first that is allowed ----------------------------------------------------------------


async def test_what_may_be_done_with_the_files_is_decided_once(reader: Reader) -> None:
    await reader.people.grant("ann", reader.catalog, *on_table(T, P.TABLE_READ_DATA))
    reader.decisions = 0

    given = [await reader.load_for_data() for _ in range(3)]

    # Whether it may write, and, as it may not, whether it may read.
    assert reader.decisions == 2
    assert [each.is_writable for each in given] == [False] * 3


async def test_a_right_to_write_that_is_granted_or_revoked_counts_with_the_next_load(reader: Reader) -> None:
    reads, writes = on_table(T, P.TABLE_READ_DATA), on_table(T, P.TABLE_WRITE_DATA)
    await reader.people.grant("ann", reader.catalog, *reads)
    assert not (await reader.load_for_data()).is_writable

    await reader.people.grant("ann", reader.catalog, *writes)
    assert (await reader.load_for_data()).is_writable
    await reader.people.revoke("ann", reader.catalog, *writes)
    assert not (await reader.load_for_data()).is_writable
    await reader.people.revoke("ann", reader.catalog, *reads)

    with pytest.raises(AccessDenied):
        await reader.load_for_data()
