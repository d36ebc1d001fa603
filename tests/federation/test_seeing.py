"""What the mirror has after somebody looked: as the remote has it, for whoever may know of it.

Holds I112, I114, I118, I119.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import CatalogNotEmpty, NoSuchNamespace, NoSuchTable, NoSuchView
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.federation.errors import NamedFileMissing, NotShown, RemoteFileMissing, RemoteUnavailable
from cynosure.federation.remote import Abilities, RemoteTable
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import (
    FIRST_LOOK,
    NS,
    OTHER_UUID,
    THIRD_UUID,
    Far,
    T,
    answer_of,
    count_who_comes,
    open_beside,
    open_far,
)

pytestmark = pytest.mark.anyio
V = Identifier(NS, "v")


async def load(far: Far, caller=ROOT, table: Identifier = T):
    await far.see(caller, table)
    return answer_of(await load_table(far.catalog, caller, table))


async def test_a_table_of_the_remote_is_loaded_as_it_is_there(far: Far) -> None:
    there = far.put()

    found = await load(far)

    assert found["table-uuid"] == there.metadata.table_uuid
    assert found["location"] == there.metadata.location
    assert await far.disagreements() == []


async def test_an_unchanged_table_is_asked_for_and_not_written_again(far: Far) -> None:
    far.put()
    await load(far)
    commits, asked = await far.count_commits(), len(far.remote.asked)

    await load(far)

    assert await far.count_commits() == commits
    assert len(far.remote.asked) == asked + 1


async def test_a_changed_table_keeps_its_id(far: Far) -> None:
    far.put()
    await load(far)
    before = await far.id_of()
    far.put(name="v2")

    found = await load(far)

    assert found["properties"] == {"version": "v2"}
    assert await far.id_of() == before
    assert await far.disagreements() == []


async def test_a_table_made_anew_has_nobodys_grants(far: Far) -> None:
    far.put()
    await load(far)
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    assert (await load(far, ann))["properties"]
    before = await far.id_of()
    far.put(uuid=OTHER_UUID)

    with pytest.raises(NoSuchTable):
        await load(far, ann)

    assert await far.id_of() != before
    assert (await load(far))["table-uuid"] == OTHER_UUID
    assert await far.disagreements() == []


async def test_a_table_that_is_gone_is_forgotten(far: Far) -> None:
    there = far.put()
    await load(far)
    del far.remote.tables[T]

    with pytest.raises(NoSuchTable):
        await load(far)

    assert await far.disagreements() == []
    far.remote.tables[Identifier(NS, "again")] = there
    assert await load(far, table=Identifier(NS, "again"))


async def test_a_renamed_table_keeps_its_id_and_grants(far: Far) -> None:
    far.put()
    await load(far)
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    before, renamed = await far.id_of(), Identifier(NS, "renamed")
    far.remote.tables[renamed] = far.remote.tables.pop(T)

    await load(far, table=renamed)

    assert await far.id_of(renamed) == before
    assert await load(far, ann, renamed)
    with pytest.raises(NoSuchTable):
        await load(far)
    assert await far.disagreements() == []


async def test_one_table_under_two_names_is_shown_under_the_first(far: Far) -> None:
    there = far.put()
    await load(far)
    second = Identifier(NS, "second")
    far.remote.tables[second] = there

    with pytest.raises(NotShown):
        await load(far, table=second)

    assert (await load(far))["table-uuid"] == there.metadata.table_uuid


async def test_a_table_outside_what_the_catalog_allows_is_not_shown(far: Far) -> None:
    outside = far.metadata("../elsewhere")
    far.remote.put(T, outside)

    with pytest.raises(NotShown) as refused:
        await load(far)

    assert "elsewhere" not in f"{refused.value} {refused.value.details}"
    assert await far.disagreements() == []


async def test_a_table_that_says_it_is_everywhere_is_not_shown(far: Far) -> None:
    base = far.catalog.base.text
    for at, properties in (("", {}), ("orders", {"write.data.path": base})):
        metadata = far.metadata(at, location=f"{base}/{at}".rstrip("/"), properties=properties)
        far.remote.put(T, metadata)

        with pytest.raises(NotShown):
            await load(far)


async def test_a_table_in_the_place_of_another_is_not_shown(far: Far) -> None:
    far.put()
    await load(far)
    far.put(Identifier(NS, "liar"), uuid=OTHER_UUID)

    with pytest.raises(NotShown):
        await load(far, table=Identifier(NS, "liar"))


async def test_who_may_do_nothing_causes_no_request_and_learns_nothing(far: Far) -> None:
    far.put()
    ann = await far.people.add("ann", far.catalog, *on_namespace_of_another(far))
    with pytest.raises(NoSuchTable) as unseen:
        await load(far, ann)
    assert far.remote.asked == []
    await load(far)
    asked = len(far.remote.asked)

    with pytest.raises(NoSuchTable) as seen:
        await load(far, ann)

    assert len(far.remote.asked) == asked
    assert str(seen.value) == str(unseen.value)


def on_namespace_of_another(far: Far):
    return on_catalog(P.CATALOG_READ_PROPERTIES)


async def test_who_may_only_list_makes_it_seen_and_is_refused(far: Far) -> None:
    far.put()
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_LIST))

    with pytest.raises(AccessDenied):
        await load(far, ann)

    assert far.remote.asked == FIRST_LOOK


async def test_rights_on_a_namespace_count_for_tables_that_were_never_seen(far: Far) -> None:
    far.put()
    far.remote.namespaces[NS] = {}
    await far.federation.see_namespace(far.catalog, ROOT, NS)
    ann = await far.people.add("ann", far.catalog, *on_namespace(NS, P.TABLE_READ_PROPERTIES))

    assert await load(far, ann)


async def test_which_file_is_missing_is_told_to_who_may_write_there(far: Far) -> None:
    far.put()
    await far.see()
    reader = await far.people.add("reader", far.catalog, *on_catalog(P.TABLE_READ_DATA))
    writer = await far.people.add("writer", far.catalog, *on_catalog(P.TABLE_WRITE_DATA))
    lost = RemoteFileMissing(str(T))
    lost.location = "file:///lost.json"

    async def lose(*_: object) -> RemoteTable:
        raise lost

    far.remote.load_table = lose  # type: ignore[method-assign]

    with pytest.raises(RemoteFileMissing, match=r"^(?!.*lost\.json)"):
        await far.see(reader)
    with pytest.raises(NamedFileMissing, match=r"lost\.json"):
        await far.see(writer)


async def test_nothing_is_asked_while_it_is_fresh(far: Far, manual_clock: ManualClock) -> None:
    await far.set_properties(max_staleness="10s")
    far.put()
    await load(far)
    far.put(name="v2")

    assert (await load(far))["properties"] == {"version": "v1"}
    assert far.remote.asked == FIRST_LOOK
    await manual_clock.advance(10)
    assert (await load(far))["properties"] == {"version": "v2"}


async def test_what_is_missing_is_not_asked_for_again_at_once(far: Far, manual_clock: ManualClock) -> None:
    for _ in range(3):
        with pytest.raises(NoSuchTable):
            await load(far)
    assert far.remote.asked == ["load-table"]
    far.put()
    await manual_clock.advance(1.1)

    assert await load(far)


async def test_a_remote_that_is_down_is_told(far: Far) -> None:
    far.put()
    await load(far)
    far.remote.is_down = True

    with pytest.raises(RemoteUnavailable):
        await load(far)


async def test_what_was_seen_is_shown_while_the_remote_is_down(far: Far, manual_clock: ManualClock) -> None:
    await far.set_properties(stale_if_down="60s")
    far.put()
    await load(far)
    far.remote.is_down = True
    await manual_clock.advance(59)

    assert await load(far)
    with pytest.raises(RemoteUnavailable):
        await load(far, table=Identifier(NS, "never"))
    await manual_clock.advance(60)
    with pytest.raises(RemoteUnavailable):
        await load(far)


async def test_another_process_shows_what_was_seen_as_long_as_the_record_says(
    far: Far, tmp_path: Path, manual_clock: ManualClock
) -> None:
    await far.set_properties(stale_if_down="60s")
    far.put()
    await load(far)
    far.remote.is_down = True

    async with open_beside(far, tmp_path / "files") as beside:
        assert await load(beside)
        await manual_clock.advance(61)
        with pytest.raises(RemoteUnavailable):
            await load(beside)


async def test_all_who_wait_are_answered_by_one_question_that_was_asked_after_they_came(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    come = count_who_comes(monkeypatch)
    far.remote.gate = asyncio.Event()
    first = asyncio.create_task(far.see())
    async with asyncio.timeout(60):
        while not far.remote.asked:  # noqa: ASYNC110 - the remote says it to nobody
            await asyncio.sleep(0.001)
        later = [asyncio.create_task(far.see()) for _ in range(10)]
        while len(come) < 11:  # noqa: ASYNC110 - nor does anybody who waits
            await asyncio.sleep(0.001)
    far.remote.gate.set()

    await asyncio.gather(first, *later)

    assert far.remote.asked == [*FIRST_LOOK, "load-table"]


async def test_of_two_processes_that_see_a_table_at_once_both_have_it(far: Far, tmp_path: Path) -> None:
    far.put()
    async with open_beside(far, tmp_path / "files") as beside:
        await asyncio.gather(*(each.see() for each in (far, beside) * 5))

        assert answer_of(await load_table(beside.catalog, ROOT, T)) == await load(far)
    assert await far.disagreements() == []


async def test_an_answer_of_before_does_not_overwrite_what_was_seen_meanwhile(
    far: Far, tmp_path: Path
) -> None:
    far.put()
    await load(far)
    far.put(name="v2")
    slow = SlowRemote(far.remote)
    async with open_beside(Far(far.directory, far.catalog, slow, far.federation), tmp_path / "files") as late:
        looking = asyncio.create_task(late.see())
        await slow.has_read.wait()
        far.put(name="v3")
        await load(far)
        slow.go_on.set()
        await looking

    view = await load_table(far.catalog, ROOT, T)
    assert answer_of(view)["properties"] == {"version": "v3"}


class SlowRemote(MemoryRemote):
    """Reads at once and answers later, the first time."""

    def __init__(self, other: MemoryRemote) -> None:
        super().__init__()
        self.namespaces, self.tables = other.namespaces, other.tables
        self.has_read, self.go_on = asyncio.Event(), asyncio.Event()

    async def load_table(self, table, known=None):
        found = await super().load_table(table, known)
        self.has_read.set()
        await self.go_on.wait()
        return found


async def test_names_that_the_remote_cannot_have_are_not_asked_for(tmp_path: Path) -> None:
    poor = Abilities(has_views=False, has_nested_namespaces=False, has_transactions=False, names="lower")
    async with open_far(tmp_path / "files", remote=MemoryRemote(poor)) as far:
        for table in (Identifier(NS, "Orders"), Identifier(("a", "b"), "t"), Identifier(("NS",), "t")):
            with pytest.raises(NoSuchTable):
                await load(far, table=table)
        await far.federation.see_view(far.catalog, ROOT, V)
        await far.federation.see_namespace(far.catalog, ROOT, ("a", "b"))

        assert far.remote.asked == []


async def test_a_namespace_is_as_the_remote_has_it_and_forgotten_with_all_in_it(far: Far) -> None:
    far.put()
    far.remote.namespaces[NS] = {"owner": "them", "cynosure.system": "no"}
    await load(far)
    await far.federation.see_namespace(far.catalog, ROOT, NS)
    assert (await load_namespace(far.catalog, ROOT, NS)).properties == {"owner": "them"}
    far.remote.tables.clear()
    far.remote.namespaces.clear()

    await far.federation.see_namespace(far.catalog, ROOT, NS)

    with pytest.raises(NoSuchNamespace):
        await load_namespace(far.catalog, ROOT, NS)
    assert await far.disagreements() == []


async def test_a_view_is_seen_changed_renamed_and_forgotten(far: Far) -> None:
    stage = Stage(far.remote, far.catalog.base.text)
    first = far.remote.put_view(V, plan_view(stage, V))
    await far.federation.see_view(far.catalog, ROOT, V)
    before = await load_view(far.catalog, ROOT, V)
    assert before.metadata_location == first.tag.metadata_location
    far.remote.put_view(V, first.metadata)
    await far.federation.see_view(far.catalog, ROOT, V)
    assert (await load_view(far.catalog, ROOT, V)).id == before.id
    renamed = Identifier(NS, "w")
    far.remote.views[renamed] = far.remote.views.pop(V)
    await far.federation.see_view(far.catalog, ROOT, renamed)
    assert (await load_view(far.catalog, ROOT, renamed)).id == before.id
    far.remote.put_view(renamed, plan_view(stage, V))
    await far.federation.see_view(far.catalog, ROOT, renamed)
    assert (await load_view(far.catalog, ROOT, renamed)).id != before.id
    far.remote.views.clear()

    await far.federation.see_view(far.catalog, ROOT, renamed)

    with pytest.raises(NoSuchView):
        await load_view(far.catalog, ROOT, renamed)
    assert await far.disagreements() == []


async def test_a_table_in_the_place_of_a_view_takes_its_name(far: Far) -> None:
    far.remote.put_view(T, plan_view(Stage(far.remote, far.catalog.base.text), T))
    await far.federation.see_view(far.catalog, ROOT, T)
    del far.remote.views[T]
    far.put()

    assert await load(far)
    assert await far.disagreements() == []


async def test_grants_by_name_are_for_whatever_has_the_name(far: Far) -> None:
    await far.set_properties(grants="by-name")
    await far.federation.see_to_grant(far.catalog, ROOT, T)
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    assert far.remote.asked == []
    facade = await far.id_of()
    with pytest.raises(NoSuchTable):
        await load(far, ann)
    far.federation.freshness.forget(far.catalog, b"")
    for uuid in (OTHER_UUID, THIRD_UUID):
        far.put(uuid=uuid)
        await far.federation.see_table(far.catalog, ann, T, is_fresh=True)
        assert answer_of(await load_table(far.catalog, ann, T))["table-uuid"] == uuid
        assert await far.id_of() == facade
    del far.remote.tables[T]
    await far.federation.see_table(far.catalog, ann, T, is_fresh=True)
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ann, T)
    assert await far.id_of() == facade
    assert await far.disagreements() == []


async def test_who_may_not_grant_makes_no_facade(far: Far) -> None:
    await far.set_properties(grants="by-name")
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_LIST))

    await far.federation.see_to_grant(far.catalog, ann, T)

    with pytest.raises(NoSuchTable):
        await far.id_of()


async def test_settings_are_the_default_of_catalogs(tmp_path: Path) -> None:
    settings = FederationSettings(max_staleness=timedelta(hours=1))
    async with open_far(tmp_path / "files", settings=settings) as far:
        far.put()
        await load(far)
        await load(far)

        assert far.remote.asked == FIRST_LOOK


async def test_a_federated_catalog_is_dropped_with_what_was_seen_and_the_remote_keeps_all(far: Far) -> None:
    far.put()
    await load(far)

    await drop_catalog(far.directory, ROOT, far.catalog.entity.name)

    assert T in far.remote.tables
    assert far.remote.asked == FIRST_LOOK


async def test_a_federated_catalog_with_policies_is_not_dropped(far: Far) -> None:
    far.put()
    await load(far)
    content = msgspec.json.encode({"enable": True}).decode()
    policy = CreatePolicy(Identifier(NS, "p"), "system.data-compaction", content)
    await create_policy(far.catalog, ROOT, policy)

    with pytest.raises(CatalogNotEmpty):
        await drop_catalog(far.directory, ROOT, far.catalog.entity.name)


async def test_who_asks_after_the_connection_has_changed_does_not_wait_for_the_remote_before(
    far: Far,
) -> None:
    far.put()
    far.remote.gate = asyncio.Event()
    before = asyncio.create_task(far.see())
    async with asyncio.timeout(60):
        while len(far.remote.asked) < 1:  # noqa: ASYNC110 - the remote says it to nobody
            await asyncio.sleep(0.001)
        await far.set_properties(max_staleness="PT0S")
        after = asyncio.create_task(far.see())
        # While the question to the remote of before is still under way.
        while len(far.remote.asked) < 2:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.001)
    far.remote.gate.set()
    await asyncio.gather(before, after)
