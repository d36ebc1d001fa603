"""Leases whose answer was lost: the database may have given a task to a worker that does not know of it.

Such a task would wait until its lease is over. So a lease is looked for by its token: right away, and before
every later lease of this process, until it would be over.

A maintainer must not break: a lost answer is never answered by leasing again, which could take two tasks and
leave one of them alone.
"""

from collections.abc import Awaitable, Callable

from cynosure.delegation.store.port import Leased

Lookup = Callable[[str, int], Awaitable[Leased | None]]
"""The task that is leased under this token until this time, if there is one."""


class LostAnswers:
    """The leases that one process may have."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._until_us: dict[str, int] = {}

    def remember(self, token: str, lease_until_us: int) -> None:
        """The answer to this lease did not come."""
        self._until_us[token] = lease_until_us

    async def find(self, now_us: int) -> Leased | None:
        """A task that was leased after all, and still is."""
        for token, until_us in list(self._until_us.items()):
            # Taken out first: two who ask at once must not both get it.
            if self._until_us.pop(token, None) is None or until_us <= now_us:
                continue
            try:
                leased = await self._lookup(token, until_us)
            except BaseException:
                self._until_us[token] = until_us
                raise
            if leased is not None:
                return leased
            # It may still be on its way to the database.
            self._until_us[token] = until_us
        return None
