"""One statement on Spark, from the gateway's side.

    begun ─► the driver builds, checks, runs ─► schema ─► batches … ─► end
    whatever ends it first says why: a fragment (the broker), Spark, the deadline, no executors, whoever asked

A maintainer must not break: what the broker says of a fragment comes before what Spark says; after `close`
nothing goes on: the driver's jobs are cancelled, and the broker takes no stream of it.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, Misconfigured, Unavailable
from cynosure.query.engine import EngineQuery
from cynosure.query.errors import DeadlinePassed, EngineUnavailable
from cynosure.query.spark.abandoned import no_worker
from cynosure.query.spark.failures import ScanFailed
from cynosure.query.spark.jobs import QueryOrder
from cynosure.query.spark.receiving import Receiver
from cynosure.spark.driver_process import Questions
from cynosure.spark.keeper import DriverKeeper

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_BROKER_S: Final = 2.0
"""How long the broker may take to say why a scan failed, once Spark said that it did."""
_NUMBERS: Final = itertools.count()


class Brokered(Protocol):
    """What is asked of the broker's side of a statement (`broker.BrokeredQuery`)."""

    @property
    def failed(self) -> "asyncio.Future[CynosureError]": ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class SparkRun:
    """A statement that runs (`engine.Results`)."""

    def __init__(
        self,
        query: EngineQuery,
        order: QueryOrder,
        drivers: DriverKeeper,
        brokered: Brokered,
        clock: Clock,
        *,
        questions: Questions,
        on_end: Callable[[], None],
        abandoned: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`abandoned` returns when nobody is there to run it; None: the driver itself does."""
        self._query = query
        self._order = order
        self._drivers = drivers
        self._brokered = brokered
        self._clock = clock
        self._questions = questions
        self._on_end = on_end
        self._abandoned = abandoned
        self._receiver: asyncio.Future[Receiver] = asyncio.get_running_loop().create_future()
        self._raw_schema: pa.Schema | None = None
        self._schema: pa.Schema | None = None
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[CynosureError | None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def schema(self) -> "pa.Schema":
        """With the names that the statement gives, as far as they are known."""
        assert self._schema is not None  # noqa: S101 - `begin` came before
        return self._schema

    async def begin(self) -> None:
        """Until the columns are known."""
        self._running = asyncio.create_task(self._run())
        self._watching = asyncio.create_task(self._watch(self._running))
        try:
            raw = await self._or_fail(self._receive_schema())
            self._raw_schema = raw
            self._schema = _rename(raw, self._query.columns)
        except BaseException:
            await self.close()
            raise

    async def batches(self) -> AsyncIterator["pa.RecordBatch"]:
        """See `engine.Results`."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        try:
            receiver = await self._receiver
            while (batch := await self._or_fail(receiver.batch(self._raw_schema))) is not None:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
            # All rows are here; whether Spark thinks so too is told by its end.
            assert self._watching is not None  # noqa: S101 - `begin` came before
            if (error := await asyncio.shield(self._watching)) is not None:
                raise error
            self._on_end()
        finally:
            await self.close()

    async def close(self) -> None:
        """End it. Whoever is cancelled meanwhile leaves nothing open: the driver would wait at the socket."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._brokered.close()
        for task in (self._watching, self._running):
            if task is not None:
                task.cancel()
        await asyncio.gather(
            *(each for each in (self._watching, self._running) if each is not None), return_exceptions=True
        )
        if self._receiver.done() and not self._receiver.cancelled():
            await self._receiver.result().close()

    async def _run(self) -> None:
        async with self._drivers.use() as driver:
            receiver = Receiver(driver.scratch / f"rows-{next(_NUMBERS)}")
            await receiver.listen()
            self._receiver.set_result(receiver)
            order = msgspec.structs.replace(self._order, results=receiver.path)
            await driver.run(
                "query",
                msgspec.to_builtins(order),
                # Spark's group of jobs ends with the run; the same statement may be run again.
                task_id=f"{self._query.id}-{next(_NUMBERS)}",
                description="statement",
                questions=self._questions,
            )

    async def _watch(self, running: "asyncio.Task[None]") -> CynosureError | None:
        """Why it ended; None: all rows were sent."""
        failed = self._brokered.failed
        left_s = self._query.deadline_s - self._clock.monotonic_s()
        late = asyncio.ensure_future(self._clock.sleep(max(left_s, 0.0)))
        alone = asyncio.ensure_future(self._until_abandoned())
        try:
            waiting: set[asyncio.Future[Any]] = {running, failed, late, alone}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                return failed.result()
            if alone.done() and not running.done():
                return no_worker()
            if not running.done():
                return DeadlinePassed(
                    "The statement took longer than it may", fix="Ask for less, or allow it more time."
                )
            if running.cancelled():
                return EngineUnavailable("The statement was ended")
            error = running.exception()
            if error is None:
                return None
            if isinstance(error, ScanFailed):
                await asyncio.wait({failed}, timeout=_BROKER_S)
                if failed.done():
                    return failed.result()
            return _translate(error)
        finally:
            late.cancel()
            alone.cancel()
            running.cancel()

    async def _until_abandoned(self) -> None:
        """Counted from when there is a driver: before, it cannot have executors."""
        await asyncio.wait({self._receiver})
        if self._abandoned is None:
            await asyncio.Event().wait()
        else:
            await self._abandoned()

    async def _receive_schema(self) -> "pa.Schema":
        # Shielded: whoever waits no longer must not take it from the one that is about to be there.
        return await (await asyncio.shield(self._receiver)).schema()

    async def _or_fail(self, work: Coroutine[Any, Any, T]) -> T:
        """What is waited for, unless the statement ends in an error before."""
        assert self._watching is not None  # noqa: S101 - `begin` came before
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._watching}, return_when=asyncio.FIRST_COMPLETED)
            if self._watching.done() and (error := self._watching.result()) is not None:
                raise error
            try:
                return await task
            except (asyncio.IncompleteReadError, OSError):
                # The driver left; it says why.
                error = await asyncio.shield(self._watching)
                raise error or EngineUnavailable("Spark did not send all rows", fix="Try again.") from None
        finally:
            if not task.done():
                task.cancel()
                # That whoever waits here is cancelled, too, is not lost.
                await asyncio.gather(task, return_exceptions=True)


async def answer_nothing(what: str, value: Any) -> Any:
    """A statement's driver asks nothing, unless it reads natively."""
    raise Misconfigured("A driver asks what nobody can answer", what=what)


def _translate(error: BaseException) -> CynosureError:
    """What the driver's end of the line raised, as this room's errors."""
    if type(error) is Unavailable:
        # The driver ended, or could not begin. Details (what a fetcher of jars printed) are not for users.
        return EngineUnavailable(error.message, fix="Send the statement again.")
    if isinstance(error, CynosureError):
        return error
    return EngineUnavailable("Spark could not run the statement", raised=type(error).__name__)


def _rename(schema: "pa.Schema", names: tuple[str, ...]) -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if len(names) != len(schema):
        # Not all names are known before Spark gives them (PIVOT); then they are Spark's.
        return schema
    return pa.schema([field.with_name(name or field.name) for field, name in zip(schema, names, strict=True)])
