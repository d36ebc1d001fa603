"""What the remote answered last is shown, whatever clocks say, and for as long as it may be (I118, I119)."""

from typing import Any

import msgspec
import pytest

from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.table_changes import TableChange
from cynosure.federation.remote import RemoteTable, TableCommit
from cynosure.iceberg.metadata.log import with_previous_file
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import T, answer_of
from tests.federation.writes.changes import Keyed, Passing, make_table, setting
from tests.federation.writes.losing_remote import Killed

pytestmark = pytest.mark.anyio

BEHIND_MS = 10


def put_later(here: Passing, *, clock_ms: int = -BEHIND_MS, **properties: str) -> RemoteTable:
    """Somebody commits at the remote, by a clock of their own; the version before is in the log."""
    last = here.remote.tables[T]
    at_ms, file = last.metadata.last_updated_ms, last.tag.metadata_location or ""
    logged, _ = with_previous_file(last.metadata, file, at_ms)
    after = msgspec.structs.replace(logged, last_updated_ms=at_ms + clock_ms, properties=properties)
    return here.remote.put(T, after)


async def show(here: Passing) -> str | None:
    """What the table's property is, as a load finds it."""
    await here.far.see()
    return value_in(await load_table(here.far.catalog, ROOT, T))


def value_in(answer: Any) -> str | None:
    value: str | None = answer_of(answer)["properties"].get("a")
    return value


async def commit(here: Passing, change: TableChange, way: str) -> None:
    if way == "table":
        answer = await here.writes.commit_table(here.far.catalog, ROOT, change)
        assert value_in(answer) == "b"
    else:
        await here.writes.commit_transaction(here.far.catalog, ROOT, [change])


@pytest.mark.parametrize("way", ["table", "transaction"])
async def test_a_commit_is_shown_by_whatever_clock_the_remote_made_it(here: Passing, way: str) -> None:
    await make_table(here)
    await here.far.set_properties(max_staleness="1h")
    put = here.remote.put

    def put_behind(table: Any, metadata: Any, **more: Any) -> RemoteTable:
        behind_ms = here.remote.tables[table].metadata.last_updated_ms - BEHIND_MS
        return put(table, msgspec.structs.replace(metadata, last_updated_ms=behind_ms), **more)

    here.remote.put = put_behind  # type: ignore[method-assign]

    await commit(here, setting(a="b"), way)

    assert await show(here) == "b"
    assert here.remote.tables[T].metadata.properties["a"] == "b"


async def test_a_repeated_commit_is_not_shown_over_what_came_behind_the_first(keyed: Passing) -> None:
    await make_table(keyed)
    await keyed.far.set_properties(max_staleness="1h")
    request = Keyed()
    keyed.remote.lost = ["killed"]
    with pytest.raises(Killed):
        await keyed.writes.commit_table(keyed.far.catalog, request.first(), setting(a="b"))
    put_later(keyed, a="theirs")

    # Only the remote knows what became of the first attempt, and it answers with the version of then.
    answer = await keyed.writes.commit_table(keyed.far.catalog, request.again(), setting(a="b"))

    assert keyed.remote.done.count("commit_table") == 1
    assert value_in(answer) == await show(keyed) == "theirs"


async def test_what_was_committed_behind_ours_and_seen_before_it_is_not_overwritten(here: Passing) -> None:
    await make_table(here)
    await here.far.set_properties(max_staleness="1h")
    ours = here.remote.commit_table

    async def overtaken(change: TableCommit, *, key: str | None = None) -> RemoteTable:
        answer = await ours(change, key=key)
        put_later(here, a="theirs")
        await here.far.federation.see_table(here.far.catalog, ROOT, T, is_fresh=True)
        return answer

    here.remote.commit_table = overtaken  # type: ignore[method-assign]

    await here.writes.commit_table(here.far.catalog, ROOT, setting(a="b"))

    assert await show(here) == "theirs"


async def test_what_was_seen_behind_the_question_and_is_older_than_the_answer_is_overwritten(
    here: Passing,
) -> None:
    await make_table(here)
    await here.far.set_properties(max_staleness="1h")

    async def follow(change: TableCommit, *, key: str | None = None) -> RemoteTable:
        put_later(here, clock_ms=1_000)
        await here.far.federation.see_table(here.far.catalog, ROOT, T, is_fresh=True)
        return put_later(here, a="b")

    here.remote.commit_table = follow  # type: ignore[method-assign]

    await here.writes.commit_table(here.far.catalog, ROOT, setting(a="b"))

    assert await show(here) == "b"


async def test_what_a_change_brought_counts_from_when_the_remote_was_asked(
    here: Passing, manual_clock: ManualClock
) -> None:
    await make_table(here)
    await here.far.set_properties(max_staleness="10s")
    ours = here.remote.commit_table

    async def slow(change: TableCommit, *, key: str | None = None) -> RemoteTable:
        answer = await ours(change, key=key)
        put_later(here, a="theirs")
        await manual_clock.advance(6)
        return answer

    here.remote.commit_table = slow  # type: ignore[method-assign]
    await here.writes.commit_table(here.far.catalog, ROOT, setting(a="b"))
    assert await show(here) == "b"
    await manual_clock.advance(5)

    assert await show(here) == "theirs"
