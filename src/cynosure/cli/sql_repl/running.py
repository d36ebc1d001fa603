"""One statement from its sending to its last row: progress, pages, and what ctrl-C means.

A maintainer must not break: whatever keeps rows from being read to their end (ctrl-C, an error, rows that
are cut), the statement is ended at the gateway.
"""

import asyncio
import contextlib
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

from cynosure.cli.output import harmless, tell
from cynosure.cli.sql_repl.writers import TableWriter, Writer, make_writer
from cynosure.client.query import ArrowPage, Page, QueryApi, QuerySession, StatementState
from cynosure.common.errors import CynosureError, Misconfigured, Unavailable

if TYPE_CHECKING:
    import pyarrow as pa

_WAIT_S: Final = 10.0
_TICK_S: Final = 0.5
"""Between two looks at the progress, where somebody sees it."""
_TEXT: Final = re.compile(r"\s*(explain|show\s+create)\b", re.IGNORECASE)


def is_text(sql: str) -> bool:
    """Whether the answer to a statement is lines of text rather than rows."""
    return _TEXT.match(sql) is not None


class Watch:
    """Who looks at a statement that runs; nobody, unless it is a bar."""

    def report(self, state: StatementState) -> None:
        """How far it is."""

    def hide(self) -> None:
        """Rows come: nothing else may be drawn where they go."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a statement."""

    rows: int
    is_cut: bool
    last: StatementState


async def run_statement(
    query: QueryApi,
    sql: str,
    session: QuerySession,
    *,
    format_: str,
    to: TextIO,
    max_rows: int,
    watch: Watch,
    is_watched: bool,
) -> Outcome:
    """Run a statement and write its rows."""
    if format_ == "arrow":
        return await _run_arrow(query, sql, session, to.buffer if hasattr(to, "buffer") else to, watch)
    writer = make_writer(format_, to, max_rows=max_rows, is_text=is_text(sql))
    wait_s = _TICK_S if is_watched else _WAIT_S
    async with _Sent(query, sql, session, wait_s) as sent:
        rows, has_begun = 0, False
        while (page := await sent.next_page(query.fetch, watch)) is not None:
            if not has_begun:
                if to.isatty() and not isinstance(writer, TableWriter):
                    watch.hide()
                writer.begin(page.columns)
                has_begun = True
            rows += len(page.rows)
            if not writer.add(page.rows):
                break
        if to.isatty():
            watch.hide()
        writer.end()
        to.flush()
        is_cut = _is_cut(writer)
        return Outcome(max_rows if is_cut else rows, is_cut, sent.state)


def _is_cut(writer: Writer) -> bool:
    return isinstance(writer, TableWriter) and writer.is_cut


async def _run_arrow(query: QueryApi, sql: str, session: QuerySession, to: Any, watch: Watch) -> Outcome:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise Misconfigured("Arrow needs pyarrow", fix="Run: pip install 'cynosure[query]'") from error
    rows = 0
    async with _Sent(query, sql, session, _WAIT_S) as sent, contextlib.AsyncExitStack() as stack:
        out: Any = None
        while (page := await sent.next_page(query.fetch_arrow, watch)) is not None:
            with pa.ipc.open_stream(page.stream) as reader:
                if out is None:
                    out = stack.enter_context(_new_stream(pa, to, reader.schema))
                for batch in reader:
                    rows += batch.num_rows
                    out.write_batch(batch)
        return Outcome(rows, False, sent.state)


def _new_stream(pa: Any, to: BinaryIO, schema: "pa.Schema") -> Any:
    return pa.ipc.new_stream(to, schema)


class _Sent:
    """A statement at the gateway; ended there when the block is left before its last page."""

    def __init__(self, query: QueryApi, sql: str, session: QuerySession, wait_s: float) -> None:
        self._query = query
        self._sql = sql
        self._session = session
        self._wait_s = wait_s
        self._id = str(uuid.uuid4())
        self._next: str | None = None
        self._is_whole = False
        self.state = StatementState(self._id, "QUEUED")

    async def __aenter__(self) -> "_Sent":
        try:
            self.state = await self._query.submit(
                self._sql, self._session, statement_id=self._id, wait_s=self._wait_s
            )
        except asyncio.CancelledError:
            await self._end()
            raise
        self._next = self.state.results
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What the gateway itself says has ended the statement already; that it does not answer has not.
        is_answer = kind is not None and issubclass(kind, CynosureError) and not issubclass(kind, Unavailable)
        if not self._is_whole and not is_answer:
            await self._end()

    async def next_page(self, fetch: Callable[..., Any], watch: Watch) -> Any:
        """The next page; None behind the last one."""
        while self._next is not None:
            watch.report(self.state)
            found: Page | ArrowPage | StatementState = await fetch(self._next, wait_s=self._wait_s)
            if not isinstance(found, StatementState):
                self._next = found.next
                self._is_whole = self._next is None
                if self._is_whole:
                    with contextlib.suppress(CynosureError):
                        self.state = await self._query.load(self._id)
                return found
            self.state = found
        return None

    async def _end(self) -> None:
        # The task may be cancelled already; that the statement ends is worth the moment.
        with contextlib.suppress(CynosureError, asyncio.CancelledError):
            await asyncio.shield(asyncio.ensure_future(self._query.cancel(self._id)))


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """A bar on standard error while a statement runs, where that is a terminal."""
    if not sys.stderr.isatty():
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[scanned]}", markup=False),
        TimeElapsedColumn(),
    )
    bars = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar = bars.add_task("", total=None, scanned="")

    class Bar(Watch):
        def report(self, state: StatementState) -> None:
            done = state.progress
            bars.update(
                bar,
                description=state.state.lower(),
                completed=done.fragments_done,
                total=done.fragments or None,
                scanned=f"{done.fragments_done}/{done.fragments} fragments, {_bytes(done.bytes_scanned)}"
                if done.fragments
                else "",
            )

        def hide(self) -> None:
            bars.stop()

    bars.start()
    try:
        yield Bar()
    finally:
        bars.stop()


def summarise(outcome: Outcome, *, is_timed: bool) -> None:
    """A line for people, on standard error."""
    last = outcome.last
    rows = f"{outcome.rows:,} row{'' if outcome.rows == 1 else 's'}"
    if outcome.is_cut:
        tell(f"({rows} shown, there are more: --max-rows, or another --format)")
        return
    timing = f", {last.elapsed_ms / 1000:.2f} s, {last.engine or 'no engine'}" if is_timed else ""
    policies = f", under {', '.join(map(harmless, last.policies))}" if is_timed and last.policies else ""
    tell(f"({rows}{timing}{policies})")


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
