"""Pages: in order, bounded ahead, the last one again."""

import asyncio

import pyarrow as pa
import pytest

from cynosure.common.errors import BadInput, Expired
from cynosure.query.coordinator.paging import Pages
from cynosure.query.coordinator.statement import Page

pytestmark = pytest.mark.anyio


def batch(rows: int, start: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(start, start + rows))})


def ids(batches: list[pa.RecordBatch]) -> list[int]:
    return [value for each in batches for value in each.column(0).to_pylist()]


async def test_rows_come_in_pages_of_a_size_and_the_last_says_so():
    pages = Pages(4)
    await pages.put(batch(6))
    await pages.put(batch(1, 6))
    await pages.finish()
    first = await pages.fetch(1, 0)
    assert first is not None
    assert (ids(first.batches), first.next) == ([0, 1, 2, 3], 2)
    second = await pages.fetch(2, 0)
    assert second is not None
    assert (ids(second.batches), second.next) == ([4, 5, 6], None)
    assert pages.is_fetched
    assert await pages.fetch(2, 0) is second
    for wrong in (1, 3, 0):
        with pytest.raises(BadInput, match="cannot be fetched"):
            await pages.fetch(wrong, 0)


async def test_no_rows_are_one_empty_page():
    pages = Pages(4)
    await pages.put(batch(0))
    await pages.finish()
    page = await pages.fetch(1, 0)
    assert page is not None
    assert (page.batches, page.next) == ([], None)


async def test_a_page_that_promised_another_is_followed_by_one():
    pages = Pages(2)
    await pages.put(batch(2))
    page = await pages.fetch(1, 0)
    assert page is not None
    assert page.next == 2
    assert await pages.fetch(2, 0.01) is None
    await pages.finish()
    last = await pages.fetch(2, 0)
    assert last is not None
    assert (last.batches, last.next) == ([], None)


async def settle() -> None:
    """Let tasks get as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_who_puts_waits_for_who_fetches():
    pages = Pages(1)
    putting = asyncio.create_task(pages.put(batch(5)))
    await settle()
    assert not putting.done()
    assert pages.rows == 3
    assert await pages.fetch(1, 1)
    await settle()
    assert pages.rows == 4
    await pages.drop()
    await putting
    with pytest.raises(Expired):
        await pages.fetch(2, 1)


async def test_two_who_wait_for_a_page_both_get_it():
    pages = Pages(1)
    waiting = [asyncio.create_task(pages.fetch(1, 5)) for _ in range(2)]
    await settle()
    await pages.put(batch(1))
    first, other = await asyncio.gather(*waiting)
    assert first is not None
    assert other is first


async def test_whoever_waits_for_a_page_that_others_are_done_with_is_refused():
    pages = Pages(1)
    late = asyncio.create_task(pages.fetch(1, 30))
    await settle()
    async with pages._changed:
        # Two pages were given meanwhile, and a third one is ready.
        pages._fetched = 2
        pages._last = Page(2, [], 3)
        pages._ready.append([batch(1)])
        pages._changed.notify_all()
    with pytest.raises(BadInput):
        await late
    assert len(pages._ready) == 1


async def test_wide_rows_make_pages_of_fewer_rows():
    pages = Pages(1_000)
    wide = pa.record_batch({"text": pa.array(["x" * 2**20] * 40)})
    putting = asyncio.create_task(pages.put(wide))
    page = await pages.fetch(1, 5)
    assert page is not None
    assert 0 < sum(each.num_rows for each in page.batches) <= 17
    await pages.drop()
    await putting


async def test_how_an_engine_cuts_its_rows_is_not_seen():
    told = []
    for sizes in ((9,), (4, 4, 1), (1, 5, 3), (7, 0, 2)):
        pages = Pages(4)
        putting = asyncio.create_task(put_all(pages, sizes))
        found = [page for number in (1, 2, 3) if (page := await pages.fetch(number, 5)) is not None]
        await putting
        told.append([[each.to_pydict() for each in page.batches] for page in found])
    assert told[0] == [[{"id": [0, 1, 2, 3]}], [{"id": [4, 5, 6, 7]}], [{"id": [8]}]]
    assert all(each == told[0] for each in told)


async def put_all(pages: Pages, sizes: tuple[int, ...]) -> None:
    start = 0
    for rows in sizes:
        await pages.put(batch(rows, start))
        start += rows
        assert pages.rows % 4 == 0
    await pages.finish()
    assert pages.rows == start
