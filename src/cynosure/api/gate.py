"""Who may come in: asked by the router before anything of a request is read beyond its head.

Must not break: every route is closed unless it says that it is public, and nothing is decoded for strangers.
"""

from typing import Protocol

from cynosure.api.asgi import Scope
from cynosure.auth.caller import Caller


class Gate(Protocol):
    """Stands in front of all routes of a service that are not public."""

    async def admit(self, scope: Scope) -> Caller:
        """The caller behind a request. `NotAuthenticated` for strangers, `NotFound` for an unknown realm."""
        ...

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """Told of every request that was refused for who asked or what they may do, before it is answered."""
        ...
