"""A speed limit in rows per second, so that a collection leaves the database to its users."""

from cynosure.common.clock import Clock

_BURST_S = 0.1
"""Sleeping for less costs more than it evens out."""


class Pacer:
    """Call it with the number of rows about to be touched; it sleeps as long as that must take."""

    def __init__(self, clock: Clock, rows_per_second: int) -> None:
        self._clock = clock
        self._rows_per_second = rows_per_second
        self._debt_s = 0.0
        self._seen_s = clock.monotonic_s()

    async def __call__(self, rows: int) -> None:
        """Wait until `rows` more rows are within the limit. A limit of zero is none."""
        if not self._rows_per_second:
            return
        now_s = self._clock.monotonic_s()
        self._debt_s = max(0.0, self._debt_s - (now_s - self._seen_s)) + rows / self._rows_per_second
        self._seen_s = now_s
        if self._debt_s > _BURST_S:
            await self._clock.sleep(self._debt_s)
