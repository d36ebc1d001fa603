"""Drops all that is below a namespace, or in a catalog, by the very operations that drop one thing.

Tables first, while everything that restricts them is still there; then views and generic tables, policies,
and namespaces, the deepest first. Purges run at the same time and are waited for together.

Must not break: what is dropped is what was there when the cascade began. What came later is in the way.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.require import AccessDenied
from cynosure.catalog.cascading.contents import Kind, Thing, walk_contents
from cynosure.catalog.cascading.plan import Weighed, load_tombstones_below, weigh
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.errors import CascadeBlocked, CascadeDenied, CascadeUnderWay, NotEmpty
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.names import Identifier, Namespace, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.purging.purge import Purge, begin_purge, finish_purge
from cynosure.catalog.purging.tombstone import Tombstone
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.targets import TableTarget
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Conflict, NotFound
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key

T = TypeVar("T")

_AT_ONCE: Final = 32
"""Things that are dropped at the same time."""
_WAITED_FOR: Final = 64
"""Purges that are waited for at the same time."""
_MOST_NAMED: Final = 20


class Emptying:
    """One cascade. The caller carries no key: that belongs to the last step, which is not taken here."""

    def __init__(
        self, catalog: OpenCatalog, caller: Caller, root: Namespace, *, is_purging: bool, is_waiting: bool
    ) -> None:
        """`is_waiting`: go on only when the last file of what is purged is gone."""
        self._catalog = catalog
        self._caller = caller
        self._root = root
        self._is_purging = is_purging
        self._is_waiting = is_waiting
        self._dropped: Counter[str] = Counter()
        self._clock = catalog.shared.persistence.clock
        self._until_s = self._clock.monotonic_s() + catalog.shared.delegation.sync_timeout.total_seconds()

    async def weigh(self) -> Weighed:
        """What there is to do; refused when something is in the way, before anything is dropped."""
        weighed = await weigh(self._catalog, self._caller, self._root, is_purging=self._is_purging)
        in_the_way = [str(each) for each in weighed.plan.in_the_way]
        if weighed.denied is not None:
            raise CascadeDenied(self._caller, weighed.denied, in_the_way=in_the_way, dropped={})
        if in_the_way:
            raise CascadeBlocked(in_the_way=in_the_way, dropped={})
        return weighed

    async def run(self, weighed: Weighed) -> None:
        """Drop all that was weighed.

        `CascadeDenied` and `CascadeBlocked` for what came in the way since, `CascadeUnderWay` when the time
        is over: each with what was dropped until then.
        """
        state, root = weighed.state, self._root
        drop_one = self._begin_purge(weighed) if self._is_purging else self._drop
        if self._is_purging:
            await _all_of([self._try_again(each) for each in await load_tombstones_below(state, root)])
        await self._drop_all(walk_contents(state, root, Kind.TABLE), drop_one)
        if self._is_waiting:
            await self._wait_for_purges()
        await self._drop_all(walk_contents(state, root, Kind.VIEW, Kind.GENERIC_TABLE), self._drop)
        await self._drop_all(walk_contents(state, root, Kind.POLICY), self._drop)
        # One after the other: a namespace goes after those in it.
        await self._drop_all(walk_contents(state, root, Kind.NAMESPACE), self._drop, at_once=1)
        await self._require_empty()

    async def _drop_all(
        self,
        things: AsyncIterator[Thing],
        drop_one: Callable[[Thing], Awaitable[None]],
        *,
        at_once: int = _AT_ONCE,
    ) -> None:
        async for batch in _batches(things, at_once):
            if self._clock.monotonic_s() >= self._until_s:
                raise await self._under_way()
            await _all_of([self._counted(thing, drop_one) for thing in batch])

    async def _counted(self, thing: Thing, drop_one: Callable[[Thing], Awaitable[None]]) -> None:
        try:
            await drop_one(thing)
        except NotFound as error:
            if isinstance(error.__cause__, AccessDenied):
                raise self._denied(thing, error.__cause__) from error
            # Somebody else has dropped it meanwhile, or an earlier attempt at this.
            return
        except AccessDenied as error:
            raise self._denied(thing, error) from error
        except NotEmpty as error:
            raise CascadeBlocked(in_the_way=[f"{thing} (not empty)"], dropped=self._account()) from error
        self._dropped[thing.kind.value] += 1

    async def _drop(self, thing: Thing) -> None:
        catalog, caller = self._catalog, self._caller
        match thing.kind:
            case Kind.TABLE:
                await drop_table(catalog, caller, thing.name)
            case Kind.GENERIC_TABLE:
                await drop_generic_table(catalog, caller, thing.name)
            case Kind.VIEW:
                await drop_view(catalog, caller, thing.name)
            case Kind.POLICY:
                # All that it is attached to goes as well, or is gone: weighed before.
                await drop_policy(catalog, caller, thing.name, is_detaching=True)
            case Kind.NAMESPACE:
                await drop_namespace(catalog, caller, thing.path)

    def _begin_purge(self, weighed: Weighed) -> Callable[[Thing], Awaitable[None]]:
        async def begin(thing: Thing) -> None:
            # Another table may have got the name meanwhile. That one is not ours to purge.
            if await self._is_still_there(weighed, thing.name):
                await begin_purge(self._catalog, self._caller, thing.name)

        return begin

    async def _is_still_there(self, weighed: Weighed, table: Identifier) -> bool:
        held = await load_held(weighed.state, await require_table_ref(weighed.state, table))
        now = await self._catalog.read()
        return await now.find("ids", encode_id_key(held.id)) == table_key(table)

    async def _try_again(self, tombstone: Tombstone) -> None:
        """Of a purge that was begun before and failed: whoever asks again wants it tried again."""
        catalog = self._catalog
        executor = catalog.shared.require_executor()
        task = await executor.find(catalog.realm, tombstone.task_id)
        if task is None or task.status is not TaskStatus.FAILURE or not task.is_begun:
            return
        state, table = await catalog.read(), Identifier(tombstone.path[:-1], tombstone.path[-1])
        dropped = await find_object(state, "dropped", encode_id_key(tombstone.drop_id), DROPPED)
        if dropped is None:
            return
        target = TableTarget(catalog.entity.id, table, dropped.state, tombstone.entity_id)
        try:
            await catalog.authorize(state, self._caller, ops.PURGE_TABLE, target)
        except AccessDenied as error:
            raise self._denied(Thing(Kind.TABLE, table), error) from error
        with suppress(Conflict, NotFound):
            # Somebody else has done it meanwhile.
            await executor.retry(catalog.realm, tombstone.task_id)

    async def _wait_for_purges(self) -> None:
        """Until all are over; also those that an earlier attempt began."""
        left = await load_tombstones_below(await self._catalog.read(), self._root)
        for start in range(0, len(left), _WAITED_FOR):
            await _all_of(
                [
                    finish_purge(
                        self._catalog, self._caller, Purge(each, is_own=False), timeout_s=self._left_s()
                    )
                    for each in left[start : start + _WAITED_FOR]
                ]
            )
        if await load_tombstones_below(await self._catalog.read(), self._root):
            raise await self._under_way()

    async def _require_empty(self) -> None:
        state = await self._catalog.read()
        left: list[str] = []
        async for thing in walk_contents(state, self._root, *Kind):
            left.append(f"{thing} (created meanwhile)")
            if len(left) == _MOST_NAMED:
                break
        if left:
            raise CascadeBlocked(in_the_way=left, dropped=self._account())

    def _left_s(self) -> float:
        return max(0.0, self._until_s - self._clock.monotonic_s())

    def _account(self) -> dict[str, int]:
        return dict(self._dropped)

    def _denied(self, thing: Thing, first: AccessDenied) -> CascadeDenied:
        return CascadeDenied(self._caller, first, in_the_way=[str(thing)], dropped=self._account())

    async def _under_way(self) -> CascadeUnderWay:
        left = await load_tombstones_below(await self._catalog.read(), self._root)
        tasks = [each.task_id for each in left[:_MOST_NAMED]]
        return CascadeUnderWay(dropped=self._account(), tasks=tasks, catalog=self._catalog.entity.name)


async def _batches(things: AsyncIterator[Thing], size: int) -> AsyncIterator[list[Thing]]:
    batch: list[Thing] = []
    async for thing in things:
        batch.append(thing)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


async def _all_of(work: "list[Awaitable[T]]") -> None:
    """Do all of it, and only then say what went wrong first: nothing is cut off half done."""
    ended = await asyncio.gather(*work, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
