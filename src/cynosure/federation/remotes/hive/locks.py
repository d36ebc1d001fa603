"""The lock of a table in a Hive Metastore, which every engine takes to change it.

The metastore itself forgets a lock after five minutes; nothing here takes half as long, so none is renewed.

A maintainer must not break: a lock is given back once nothing more can come of what was done under it. When
an alteration was sent and not answered it is kept, until the metastore forgets it: it may still be carried
out, and must not land upon the change of somebody who got the lock meanwhile.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.federation.errors import RemoteConflict, RemoteMisbehaved
from cynosure.federation.remotes.hive.client import HiveClient, HiveRefused, ignore_refusal, refusal
from cynosure.federation.remotes.hive.thrift import BOOL, INT32, INT64, STRUCT, Value, structs, text

_EXCLUSIVE: Final = 3
_ON_TABLE: Final = 2
_NOTHING_ELSE: Final = 5
_ACQUIRED: Final = 1
_WAITING: Final = 2
_WAIT_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_GIVING_BACK: Final[set["asyncio.Future[None]"]] = set()
"""Held here, because nobody else does once a request is cancelled."""


class TableLock:
    """The exclusive lock of one table. `keep` before it is left: it is not given back."""

    def __init__(self, client: HiveClient, clock: Clock, name: str, database: str, table: str) -> None:
        self._client = client
        self._clock = clock
        self._name = name
        self._database = database
        self._table = table
        self._id: int | None = None

    def keep(self) -> None:
        """Leave it to the metastore to forget it."""
        self._id = None

    async def __aenter__(self) -> "TableLock":
        # A question: whatever becomes of it, nothing was done to the table.
        asked = self._client.read("lock", {1: Value(STRUCT, self._request())}, is_once=True)
        asking = asyncio.ensure_future(asked)
        try:
            state = self._read(await asyncio.shield(asking))
        except HiveRefused as refused:
            raise refusal(self._name, refused) from refused
        except asyncio.CancelledError:
            # It may be there already, and only the answer says by which number it is given back.
            _finish(self._give_back_unused(asking))
            raise
        try:
            await self._wait(state)
        except BaseException:
            await self._unlock()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._unlock()

    async def _wait(self, state: int) -> None:
        until_s, pause_s = self._clock.monotonic_s() + _WAIT_S, _FIRST_PAUSE_S
        while state == _WAITING and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            asked = {1: Value(STRUCT, {1: Value(INT64, self._id)})}
            try:
                state = self._read(await self._client.read("check_lock", asked))
            except HiveRefused as error:
                raise RemoteConflict("The lock of the table was lost in the remote catalog") from error
        if state != _ACQUIRED:
            raise RemoteConflict(
                "Somebody else holds the lock of the table in the remote catalog", fix="Try again."
            )

    def _read(self, answer: Any) -> int:
        number, state = (answer.get(1), answer.get(2)) if isinstance(answer, dict) else (None, None)
        if number is None or state is None or number.type != INT64 or state.type != INT32:
            raise RemoteMisbehaved(self._name, problem="a lock without a number or a state")
        self._id = number.value
        return int(state.value)

    def _request(self) -> dict[int, Value]:
        component = {
            1: Value(INT32, _EXCLUSIVE),
            2: Value(INT32, _ON_TABLE),
            3: text(self._database),
            4: text(self._table),
            6: Value(INT32, _NOTHING_ELSE),
            7: Value(BOOL, True),
        }
        return {1: structs([component]), 3: text("cynosure"), 4: text("cynosure"), 5: text(self._name)}

    async def _unlock(self) -> None:
        if self._id is None:
            return
        asked = {1: Value(STRUCT, {1: Value(INT64, self._id)})}
        self._id = None
        giving = _finish(ignore_refusal(self._client.change("unlock", asked)))
        # Also when the request is cancelled: others would wait five minutes.
        with suppress(asyncio.CancelledError):
            await asyncio.shield(giving)

    async def _give_back_unused(self, asking: "asyncio.Future[Any]") -> None:
        with suppress(CynosureError, HiveRefused):
            self._read(await asking)
            await self._unlock()


def _finish(doing: Coroutine[Any, Any, None]) -> "asyncio.Future[None]":
    """Do this to its end, whoever is cancelled."""
    giving = asyncio.ensure_future(doing)
    _GIVING_BACK.add(giving)
    giving.add_done_callback(_GIVING_BACK.discard)
    return giving
