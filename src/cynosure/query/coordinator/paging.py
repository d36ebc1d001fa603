"""Results in pages: a few ahead of whoever fetches them, and no more.

Pages are numbered from 1. The last one that was fetched can be fetched again, because its answer may have
been lost on the way.

A maintainer must not break: `put` waits while the pages ahead are full; that is what holds the engine back.
A page is one batch: how engines cut their rows follows from how scans do, and tells where hidden ones are.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from cynosure.common.errors import BadInput, Expired
from cynosure.query.coordinator.statement import Page

if TYPE_CHECKING:
    import pyarrow as pa

_AHEAD: Final = 2
"""Pages that wait to be fetched."""
_PAGE_BYTES: Final = 16 * 2**20


class Pages:
    """The results of one statement."""

    def __init__(self, page_rows: int) -> None:
        self._page_rows = page_rows
        self._ready: deque[list[pa.RecordBatch]] = deque()
        self._open: list[pa.RecordBatch] = []
        self._open_rows = 0
        self._open_bytes = 0
        self._fetched = 0
        """The number of the last page that was fetched."""
        self._last: Page | None = None
        self._is_complete = False
        self._is_dropped = False
        self._changed = asyncio.Condition()
        self.rows = 0
        """Of whole pages."""

    @property
    def is_complete(self) -> bool:
        """Whether all rows are in pages."""
        return self._is_complete

    @property
    def held_bytes(self) -> int:
        """Of pages that wait to be fetched."""
        return sum(each.nbytes for page in self._ready for each in page)

    @property
    def is_fetched(self) -> bool:
        """Whether nothing is left to fetch."""
        return self._is_complete and self._last is not None and self._last.next is None

    async def put(self, batch: "pa.RecordBatch") -> None:
        """Add rows; waits while enough pages are ready."""
        at = 0
        while at < batch.num_rows:
            # Wide rows make pages of fewer rows.
            row_bytes = max(1, batch.nbytes // batch.num_rows)
            room = min(
                self._page_rows - self._open_rows, max(1, (_PAGE_BYTES - self._open_bytes) // row_bytes)
            )
            part = batch.slice(at, room)
            at += part.num_rows
            self._open.append(part)
            self._open_rows += part.num_rows
            self._open_bytes += part.num_rows * row_bytes
            if self._open_rows >= self._page_rows or self._open_bytes + row_bytes > _PAGE_BYTES:
                await self._close_page()

    async def finish(self) -> None:
        """No more rows come. Waits for room for the last page: empty, if the one before promised another."""
        if self._open or not self._ready:
            await self._close_page()
        async with self._changed:
            self._is_complete = True
            self._changed.notify_all()

    async def drop(self) -> None:
        """Give all pages up: nobody fetches them, or the statement was ended."""
        async with self._changed:
            self._is_dropped = True
            self._ready.clear()
            self._open.clear()
            self._last = None
            self._changed.notify_all()

    async def fetch(self, number: int, wait_s: float) -> Page | None:
        """A page, or None when it is not ready in time."""
        async with self._changed:
            if self._last is not None and number == self._last.number:
                return self._last
            if number != self._fetched + 1 or (self._last is not None and self._last.next is None):
                self._refuse(number)
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait_for(
                        lambda: self._is_dropped or self._ready or self._fetched >= number
                    )
            except TimeoutError:
                return None
            if self._is_dropped:
                raise Expired(
                    "The results are not there any more", fix="Send the statement again.", page=number
                )
            # Two may have waited for the same page, and one of them for another one since.
            if self._last is not None and number == self._last.number:
                return self._last
            if number != self._fetched + 1:
                self._refuse(number)
            batches = self._ready.popleft()
            is_last = self._is_complete and not self._ready
            self._fetched = number
            self._last = Page(number, batches, None if is_last else number + 1)
            self._changed.notify_all()
            return self._last

    async def _close_page(self) -> None:
        self.rows += self._open_rows
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._ready) < _AHEAD or self._is_dropped)
            if not self._is_dropped:
                self._ready.append(_in_one(self._open))
            self._open, self._open_rows, self._open_bytes = [], 0, 0
            self._changed.notify_all()

    def _refuse(self, number: int) -> None:
        raise BadInput(
            "This page cannot be fetched",
            field="page",
            fix="Fetch the pages in their order; only the last one can be fetched again.",
            page=number,
            next=self._fetched + 1,
        )


def _in_one(batches: "list[pa.RecordBatch]") -> "list[pa.RecordBatch]":
    """The same rows as one batch, or none."""
    if len(batches) < 2:
        return batches
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return [pa.concat_batches(batches)]
