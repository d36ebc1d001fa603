"""Ids for the life of a process: acquire a node id, keep it, replace it when lost, give it back.

Must not break: the generator decides by itself, from the clocks, whether it may make an id. The renewal
task only moves the ends of its grant, so a stopped or slow renewal can never make ids unsafe.
"""

import asyncio
from random import Random
from types import TracebackType

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, Damaged, LeaseLost, Misconfigured
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.ids.node_lease import NodeLease, NodeLeases
from cynosure.persistence.ids.snowflake import SnowflakeIds

_RETRY_FIRST_S = 0.5
log = Log(__name__)


class LeasedIds:
    """`async with LeasedIds(leases, clock, rng) as ids: ids.next()`."""

    def __init__(self, leases: NodeLeases, clock: Clock, rng: Random, *, renew_every_s: float = 20.0) -> None:
        if renew_every_s * 2 > leases.lease_s:
            raise Misconfigured(
                "A lease must outlive at least one failed renewal",
                fix="Renew at least twice per lease.",
                renew_every_s=renew_every_s,
                lease_s=leases.lease_s,
            )
        self._leases = leases
        self._clock = clock
        self._rng = rng
        self._renew_every_s = renew_every_s
        self._is_urgent = asyncio.Event()
        self._ids = SnowflakeIds(clock, on_exhausted=self._is_urgent.set)
        self._lease: NodeLease | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def lease(self) -> NodeLease | None:
        """The lease held, or `None` between two leases."""
        return self._lease

    async def __aenter__(self) -> SnowflakeIds:
        await self._acquire()
        self._keeper = asyncio.create_task(self._keep(), name="node-lease")
        return self._ids

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        # Order: no id after the last timestamp is written down.
        self._ids.revoke()
        if self._lease is not None:
            lease, self._lease = self._lease, None
            try:
                await self._leases.release(lease, last_ms=self._ids.last_ms)
            except CynosureError as failure:
                # It runs out by itself; an exit must not fail over it.
                log.event("node_lease.not_released", level=WARNING, node=lease.node, error=failure)

    async def _acquire(self) -> None:
        lease = self._lease = await self._leases.acquire()
        self._ids.grant(
            lease.node,
            not_before_ms=lease.not_before_ms,
            until_ms=lease.until_ms,
            deadline_s=lease.deadline_s,
        )
        log.event("node_lease.acquired", node=lease.node)

    async def _keep(self) -> None:
        failures = 0
        while True:
            if failures:
                # The urgent ones wait here too, or a database that refuses would be asked without pause.
                backoff_s = min(self._renew_every_s / 4, _RETRY_FIRST_S * 2.0 ** min(failures, 16))
                await self._clock.sleep(backoff_s * self._rng.uniform(0.5, 1.0))
            else:
                await self._sleep_unless_urgent(self._renew_every_s * self._rng.uniform(0.9, 1.0))
            self._is_urgent.clear()
            try:
                await self._renew_or_replace()
                failures = 0
            except Exception as error:
                # Whatever it was: without this task the process would soon make no ids at all.
                failures += 1
                log.event("node_lease.renewal_failed", level=WARNING, error=error, failures=failures)

    async def _renew_or_replace(self) -> None:
        if self._lease is not None:
            try:
                lease = self._lease = await self._leases.renew(self._lease)
                self._ids.extend(until_ms=lease.until_ms, deadline_s=lease.deadline_s)
                return
            except (LeaseLost, Damaged) as error:
                self._ids.revoke()
                log.event("node_lease.lost", level=WARNING, node=self._lease.node, error=error)
                self._lease = None
        await self._acquire()

    async def _sleep_unless_urgent(self, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        urgent = asyncio.ensure_future(self._is_urgent.wait())
        try:
            await asyncio.wait({sleeping, urgent}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            urgent.cancel()
