"""Tables under an Idempotency-Key: the version that was told first, and access as of now (I73-I77)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.request_key import Refused, Rehearsed
from cynosure.auth.require import AccessDenied
from cynosure.catalog.file_access.giving import Access
from cynosure.catalog.file_access.modes import ANY_WAY, NOT_ASKED
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.load_generic_table import load_generic_table
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable, create_table
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.give_access_to_created import give_access_to_created
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput, OutcomeUnknown
from cynosure.iceberg.errors import RequirementFailed
from cynosure.persistence.objects import open_envelope
from cynosure.storage.access.ports import Scope, Subject, Vended
from cynosure.storage.location import Location
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_access import P, People, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from cynosure.testing.small_keys import key_of, with_key
from tests.catalog.external import write_metadata
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.operations.test_move_tables import put_pointer
from tests.catalog.repeat_cases import answer_bytes
from tests.catalog.restrictions.restricting import restrict
from tests.catalog.tables import T, change, decoded, make, properties, requirements, updates
from tests.catalog.test_staged import creation
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio

NEW = Identifier(NS, "new")
LIFETIME = timedelta(hours=1)


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


def setting(table: Identifier = T, **values: str) -> TableChange:
    return TableChange(table, [], updates(properties(**values)))


def metadata_files(lake: Lake) -> set[str]:
    return {f"file://{each}" for each in lake.folder.rglob("*.metadata.json")}


async def count_commits(catalog: OpenCatalog) -> int:
    return (await catalog.read()).commit.record.sequence


# --- the version that was told ----------------------------------------------------------------------------


async def test_changes_that_shared_a_commit_are_each_told_their_own_version(lake: Lake) -> None:
    catalog, before = lake.catalog, await count_commits(lake.catalog)
    texts = [f"key-{number}" for number in range(6)]
    first = await asyncio.gather(
        *(commit_table(catalog, with_key(ROOT, text), setting(**{text: "set"})) for text in texts)
    )
    assert await count_commits(catalog) - before < len(texts), "some were in one commit"
    catalog.shared.tables.clear()

    for text, answer in zip(texts, first, strict=True):
        again = await commit_table(catalog, with_key(ROOT, text, is_repeat=True), setting(**{text: "set"}))
        assert answer_bytes(again) == answer_bytes(answer)


async def test_of_two_attempts_at_once_one_commits_and_its_file_alone_stays(lake: Lake) -> None:
    catalog, before = lake.catalog, await count_commits(lake.catalog)
    known = metadata_files(lake)

    answers = await asyncio.gather(
        *(commit_table(catalog, with_key(ROOT, is_repeat=each), setting(k="v")) for each in (False, True))
    )
    await catalog.shared.background.close()

    assert answer_bytes(answers[0]) == answer_bytes(answers[1])
    assert await count_commits(catalog) == before + 1
    assert metadata_files(lake) - known == {answers[0].metadata_location}


async def test_of_two_transactions_at_once_the_files_of_one_stay(lake: Lake) -> None:
    catalog = lake.catalog
    await make(catalog, NEW)
    known = metadata_files(lake)
    wanted = [setting(T, k="v"), setting(NEW, k="v")]

    await asyncio.gather(
        *(commit_transaction(catalog, with_key(ROOT, is_repeat=each), wanted) for each in (False, True))
    )
    await catalog.shared.background.close()

    current = {(await load_table(catalog, ROOT, each)).metadata_location for each in (T, NEW)}
    assert metadata_files(lake) - known == current


async def test_a_repeat_does_not_remove_files_that_were_outdated_at_the_time(lake: Lake) -> None:
    """They may have been registered since."""
    catalog = lake.catalog
    kept = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    await change(catalog, {"action": "set-properties", "updates": kept})
    oldest = (await load_table(catalog, ROOT, T)).metadata_location or ""
    await change(catalog, properties(a="1"))
    await commit_table(catalog, with_key(ROOT), setting(b="2"))
    await catalog.shared.background.close()
    assert oldest not in metadata_files(lake)
    await catalog.files.write(Location.parse(oldest), b"{}")

    await commit_table(catalog, with_key(ROOT, is_repeat=True), setting(b="2"))
    await catalog.shared.background.close()

    assert oldest in metadata_files(lake)


# --- refusals ---------------------------------------------------------------------------------------------


async def test_a_requirement_that_failed_for_a_repeat_stays_failed_for_the_first_attempt(lake: Lake) -> None:
    gone = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}
    wanted = TableChange(T, requirements(gone), updates(properties(k="v")))
    with pytest.raises(RequirementFailed):
        await commit_table(lake.catalog, with_key(ROOT, is_repeat=True), wanted)
    files = metadata_files(lake)

    with pytest.raises(Refused, match="refused before"):
        await commit_table(lake.catalog, with_key(ROOT), setting(k="v"))
    await lake.catalog.shared.background.close()

    assert "k" not in decoded(await load_table(lake.catalog, ROOT, T))["properties"]
    assert metadata_files(lake) == files


async def test_a_file_that_was_missing_for_a_repeat_is_not_registered_afterwards(
    lake: Lake,
) -> None:
    file = f"{lake.catalog.base.text}/orders/metadata/v1.metadata.json"
    with pytest.raises(BadInput, match="no metadata file"):
        await register_table(lake.catalog, with_key(ROOT, is_repeat=True), NEW, file)
    assert await write_metadata(lake.catalog) == file

    with pytest.raises(Refused):
        await register_table(lake.catalog, with_key(ROOT), NEW, file)

    await register_table(lake.catalog, with_key(ROOT, "another key"), NEW, file)


# --- several tables ---------------------------------------------------------------------------------------


async def test_a_transaction_is_told_again_only_to_who_may_still_change_all_of_it(lake: Lake) -> None:
    await make(lake.catalog, NEW)
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_CREATE))
    await lake.people.grant("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))
    await lake.people.grant("ann", lake.catalog, *on_table(NEW, P.TABLE_WRITE_PROPERTIES))
    wanted = [setting(T, k="v"), setting(NEW, k="v")]
    await commit_transaction(lake.catalog, with_key(ann), wanted)
    await commit_transaction(lake.catalog, with_key(ann, is_repeat=True), wanted)
    await lake.people.revoke("ann", lake.catalog, *on_table(NEW, P.TABLE_WRITE_PROPERTIES))

    with pytest.raises(AccessDenied):
        await commit_transaction(lake.catalog, with_key(ann, is_repeat=True), wanted)


async def test_a_table_that_is_missing_does_not_hide_that_another_may_not_be_changed(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_CREATE))
    wanted = [setting(NEW, k="v"), setting(T, k="v")]

    with pytest.raises(AccessDenied):
        await commit_transaction(lake.catalog, with_key(ann, is_rehearsal=True), wanted)


async def test_a_transaction_that_changes_what_it_creates_is_told_again(lake: Lake) -> None:
    staged = await create_table(lake.catalog, ROOT, CreateTable(NS, "new", SCHEMA, is_staged=True))
    wanted = [creation(staged), setting(NEW, k="v")]
    await commit_transaction(lake.catalog, with_key(ROOT), wanted)
    heads, again = await lake.heads(), with_key(ROOT, is_repeat=True)

    await commit_transaction(lake.catalog, again, wanted)

    assert key_of(again).is_recalled
    assert await lake.heads() == heads


# --- tables of which only the file is known ---------------------------------------------------------------


@pytest.fixture
async def pointed(lake: Lake) -> Identifier:
    """A table that is not imported yet."""
    created = await unregister_table(lake.catalog, ROOT, T)
    assert created.metadata_location is not None
    await put_pointer(lake.catalog, NEW, created.metadata_location, decoded(created)["location"])
    return NEW


async def act_on(catalog: OpenCatalog, caller: Caller, table: Identifier, how: str) -> object:
    match how:
        case "commit":
            return await commit_table(catalog, caller, setting(table, k="v"))
        case "transaction":
            return await commit_transaction(catalog, caller, [setting(table, k="v")])
        case "unregister":
            return await unregister_table(catalog, caller, table)
    path = Identifier(NS, "rows")
    return await attach_policy(catalog, caller, path, AttachTo("table-like", (*NS, table.name)))


@pytest.mark.parametrize("how", ["commit", "transaction", "unregister", "attach"])
async def test_a_rehearsal_imports_nothing(lake: Lake, pointed: Identifier, how: str) -> None:
    await restrict(lake, "rows", None, filter="id > 1")
    heads = await lake.heads()

    with pytest.raises(Rehearsed):
        await act_on(lake.catalog, with_key(ROOT, is_rehearsal=True), pointed, how)

    assert await lake.heads() == heads
    assert (await require_table_ref(await lake.catalog.read(), pointed)).type == POINTER.name


async def test_who_waits_for_an_import_is_not_told_of_a_rehearsal(lake: Lake, pointed: Identifier) -> None:
    await restrict(lake, "rows", None, filter="id > 1")
    rehearsing = act_on(lake.catalog, with_key(ROOT, is_rehearsal=True), pointed, "attach")

    rehearsed, loaded = await asyncio.gather(
        rehearsing, load_table(lake.catalog, ROOT, pointed), return_exceptions=True
    )

    assert isinstance(rehearsed, Rehearsed)
    assert isinstance(loaded, TableAnswer)


async def test_a_rehearsal_reads_no_file(lake: Lake) -> None:
    missing = f"{lake.catalog.base.text}/missing.metadata.json"

    with pytest.raises(Rehearsed):
        await register_table(lake.catalog, with_key(ROOT, is_rehearsal=True), NEW, missing)


@pytest.mark.parametrize("how", ["commit", "transaction", "unregister", "attach"])
async def test_what_imported_a_table_first_is_told_again(lake: Lake, pointed: Identifier, how: str) -> None:
    await restrict(lake, "rows", None, filter="id > 1")
    await act_on(lake.catalog, with_key(ROOT), pointed, how)
    heads, again = await lake.heads(), with_key(ROOT, is_repeat=True)

    await act_on(lake.catalog, again, pointed, how)

    assert key_of(again).is_recalled
    assert await lake.heads() == heads


@pytest.mark.parametrize("how", ["commit", "transaction", "unregister", "attach"])
async def test_an_import_that_is_refused_refuses_the_request(
    lake: Lake, pointed: Identifier, how: str
) -> None:
    await restrict(lake, "rows", None, filter="id > 1")
    (file,) = {each for each in metadata_files(lake) if "/t-" in each or "/t/" in each}
    path = Path(file.removeprefix("file://"))
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(BadInput, match="no metadata file"):
        await act_on(lake.catalog, with_key(ROOT, is_repeat=True), pointed, how)
    path.write_bytes(content)

    with pytest.raises(Refused):
        await act_on(lake.catalog, with_key(ROOT), pointed, how)


# --- access to files --------------------------------------------------------------------------------------


class HalfHourVendor(MemoryVendor):
    """Whose credentials live for half an hour."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        made = await super().mint(scope, subject)
        now_ms = self._clock.now_us() // 1000
        return Vended(made.credentials, now_ms, now_ms + 1_800_000)


class Shop(NamedTuple):
    """A catalog whose storage gives access, and somebody who may create tables in it."""

    lake: Lake
    catalog: OpenCatalog
    ann: Caller
    clock: ManualClock
    vendor: MemoryVendor

    async def create(self, caller: Caller, *, is_staged: bool = False) -> CreatedTable:
        wanted = CreateTable(NS, "new", SCHEMA, is_staged=is_staged)
        return await create_table(self.catalog, caller, wanted, delegation=ANY_WAY)

    async def repeat(self, *, is_staged: bool = False) -> tuple[CreatedTable, Access]:
        """The same request again: what it is told of the table, and of its files."""
        again = with_key(self.ann, is_repeat=True)
        created = await self.create(again, is_staged=is_staged)
        return created, await give_access_to_created(self.catalog, again, NEW, created, ANY_WAY)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    clock = ManualClock()
    settings = CatalogSettings(staging_lifetime=LIFETIME)
    async with open_directory_in(tmp_path, clock=clock, catalog_settings=settings) as directory:
        people = People(directory)
        await people.root()
        plain = await make_catalog(directory, tmp_path)
        vendor = HalfHourVendor(clock)
        lake = Lake(directory, vending(plain, vendor), people, tmp_path)
        await create_namespace(plain, ROOT, NS, {})
        ann = await people.add("ann", plain, *on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA))
        yield Shop(lake, lake.catalog, ann, clock, vendor)


@pytest.mark.parametrize("is_staged", [False, True])
async def test_a_repeated_creation_is_given_access_anew(shop: Shop, is_staged: bool) -> None:
    first = await shop.create(with_key(shop.ann), is_staged=is_staged)

    again, access = await shop.repeat(is_staged=is_staged)

    assert again.answer.load_body() == first.answer.load_body()
    assert access.vended is not None
    assert [each.prefix for each in access.vended.credentials] == [first.state.location]


async def test_no_access_is_given_to_a_table_that_is_gone(shop: Shop) -> None:
    first = await shop.create(with_key(shop.ann))
    await drop_table(shop.catalog, ROOT, NEW)

    again, access = await shop.repeat()

    assert again.answer.load_body() == first.answer.load_body()
    assert access.vended is None


async def test_no_access_is_given_to_another_table_of_the_name(shop: Shop) -> None:
    await shop.create(with_key(shop.ann))
    await drop_table(shop.catalog, ROOT, NEW)
    await make(shop.catalog, NEW, location=f"{shop.catalog.base.text}/other")

    _, access = await shop.repeat()

    assert access.vended is None
    assert shop.vendor.minted == []


async def test_no_access_is_given_to_rows_that_were_hidden_since(shop: Shop) -> None:
    await shop.create(with_key(shop.ann))
    await restrict(shop.lake, "rows", AttachTo("table-like", (*NS, "new")), filter="id > 1")

    _, access = await shop.repeat()

    assert access.vended is None


async def test_nor_to_an_engine_that_would_not_be_told_which_rows_to_hide(shop: Shop) -> None:
    """It may have the files of a restricted table, with the restrictions. This answer has none."""
    people = shop.lake.people
    engine = await people.add("engine")
    await set_trusted_service(people.identities, ROOT, "engine", is_trusted=True)
    assert engine.identity is not None
    assert shop.ann.identity is not None
    acting = structs.replace(
        shop.ann.identity,
        actor_id=engine.identity.principal_id,
        actor_credential=engine.identity.credential,
    )
    for_ann = shop._replace(ann=structs.replace(shop.ann, identity=acting))
    await for_ann.create(with_key(for_ann.ann))
    _, open_to_all = await for_ann.repeat()
    await restrict(shop.lake, "rows", AttachTo("table-like", (*NS, "new")), filter="id > 1")

    _, access = await for_ann.repeat()

    assert open_to_all.vended is not None
    assert access.vended is None


async def test_access_is_given_to_where_the_table_is_now(shop: Shop) -> None:
    await shop.create(with_key(shop.ann))
    moved = f"{shop.catalog.base.text}/moved"
    await change(shop.catalog, {"action": "set-location", "location": moved}, table=NEW)

    _, access = await shop.repeat()

    assert access.vended is not None
    assert moved in [each.prefix for each in access.vended.credentials]


async def test_a_creation_that_is_not_promised_any_more_gets_no_access(shop: Shop) -> None:
    """Credentials that outlive the reservation would be shared with whoever gets its place."""
    first = await shop.create(with_key(shop.ann), is_staged=True)
    await shop.clock.advance(31 * 60)

    again, access = await shop.repeat(is_staged=True)

    assert again.answer.load_body() == first.answer.load_body()
    assert access.vended is None


async def test_a_staged_table_that_was_created_since_is_loaded_with_access(shop: Shop) -> None:
    first = await shop.create(with_key(shop.ann), is_staged=True)
    await commit_table(shop.catalog, shop.ann, creation(first))

    again, access = await shop.repeat(is_staged=True)

    assert again.answer.load_body() == first.answer.load_body()
    assert access.vended is not None


async def test_a_staged_creation_is_the_same_when_access_was_asked_for_and_comes_too_late(shop: Shop) -> None:
    """The attempt that asked for it was paused; the next one did not ask, and was told first."""
    wanted = CreateTable(NS, "new", SCHEMA, is_staged=True)
    told = await create_table(shop.catalog, with_key(shop.ann, is_repeat=True), wanted)

    late = await shop.create(with_key(shop.ann), is_staged=True)

    assert late.answer.load_body() == told.answer.load_body()


async def test_a_staged_creation_is_the_same_when_no_access_is_asked_for_this_time(shop: Shop) -> None:
    first = await shop.create(with_key(shop.ann), is_staged=True)
    wanted = CreateTable(NS, "new", SCHEMA, is_staged=True)

    again = await create_table(shop.catalog, with_key(shop.ann, is_repeat=True), wanted, delegation=NOT_ASKED)

    assert again.answer.load_body() == first.answer.load_body()


async def test_what_is_kept_of_an_answer_is_not_readable_in_the_store(shop: Shop) -> None:
    """I78."""
    told, unseen = {"a-property-of-the-answer": "x"}, ("another-property",)
    wanted = CreateTable(NS, "new", SCHEMA, is_staged=True, properties=told)
    await create_table(shop.catalog, with_key(shop.ann), wanted, delegation=ANY_WAY)
    update = PropertiesUpdate(removals=unseen)
    await update_namespace_properties(shop.catalog, with_key(ROOT, "another key"), NS, update)

    backend = shop.catalog.shared.persistence.backend
    keys = [each.key for each in await backend.scan(after=None, limit=10_000)]
    rows = [row for row in await backend.fetch(keys) if row is not None]
    written = b"".join(open_envelope(row.key, row.blob).payload for row in rows)

    assert b"staged" in b"".join(row.key.type.encode() for row in rows)
    for text in (*told, *unseen):
        assert text.encode() not in written


# --- generic tables ---------------------------------------------------------------------------------------

GENERIC = Identifier(NS, "g")


def generic(catalog: OpenCatalog) -> CreateGenericTable:
    return CreateGenericTable(GENERIC, "delta", f"{catalog.base.text}/g")


async def test_a_generic_table_without_access_stays_for_the_next_attempt(lake: Lake) -> None:
    closed = vending(lake.catalog, MemoryVendor(refused="/g"))
    with pytest.raises(OutcomeUnknown, match="no access could be given"):
        await create_generic_table(closed, with_key(ROOT), generic(closed), is_delegated=True)
    opened = vending(lake.catalog, MemoryVendor())
    again = with_key(ROOT, is_repeat=True)

    made = await create_generic_table(opened, again, generic(opened), is_delegated=True)

    assert key_of(again).is_recalled
    assert [each.prefix for each in made.access] == [made.entity.location]
    assert (await load_generic_table(lake.catalog, ROOT, GENERIC)).entity == made.entity


async def test_no_access_is_given_to_a_generic_table_that_is_gone(lake: Lake) -> None:
    opened = vending(lake.catalog, MemoryVendor())
    first = await create_generic_table(opened, with_key(ROOT), generic(opened), is_delegated=True)
    assert first.access
    await drop_generic_table(opened, ROOT, GENERIC)

    again = await create_generic_table(
        opened, with_key(ROOT, is_repeat=True), generic(opened), is_delegated=True
    )

    assert (again.entity, again.access) == (first.entity, ())
