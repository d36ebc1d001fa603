"""What the fault proxy can do to a request, and the rules that say when.

A maintainer must not break: `LoseAnswer` and `ReplaceAnswer` act only after the upstream has answered, so
the effect of the request is certain while the client knows nothing of it, or something else. Everything else
in this file is either certainly not applied or the author of the test has to say which.
"""

import asyncio
from collections.abc import Callable
from random import Random

from msgspec import Struct


class Request(Struct, frozen=True):
    """What a rule sees of one request. Fields that the wire does not know are empty."""

    connection: int
    """Counted from 0 in the order of arrival at the proxy."""
    number: int
    """Counted from 0 within its connection."""
    data: bytes
    """HTTP and PostgreSQL: the whole request. Plain TCP: what the client has sent since the last answer."""
    method: str = ""
    path: str = ""
    statements: tuple[str, ...] = ()
    """SQL that this request executes, also when it was prepared by an earlier request."""


class LoseAnswer(Struct, frozen=True):
    """Forward the request, swallow the whole answer, then cut the connection."""

    hangs: bool = False
    """Leave the connection open and silent instead of cutting it: the client has to give up by itself."""
    is_polite: bool = False
    """Close the connection in order instead of resetting it, as a proxy does that is shut down. Clients tell
    the two apart: one is an end without an answer, the other an error of the network."""
    settle_s: float = 0.05
    """Plain TCP only: the answer is over when the upstream, having begun it, is silent for so long."""


class Delay(Struct, frozen=True):
    """Hold the request back before forwarding it, or the answer before delivering it."""

    request_s: float = 0.0
    answer_s: float = 0.0


class Hold(Struct, frozen=True):
    """Hold the answer back until somebody sets this."""

    until: asyncio.Event


class Respond(Struct, frozen=True):
    """Answer in place of the upstream, which never sees the request. HTTP only."""

    status: int = 503
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class ReplaceAnswer(Struct, frozen=True):
    """Forward the request, swallow the whole answer, then deliver this one instead. HTTP only."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class CutRequest(Struct, frozen=True):
    """Forward the first bytes of the request, then cut both sides."""

    after_bytes: int = 0


class CutAnswer(Struct, frozen=True):
    """Forward the request, deliver the first bytes of the answer, then cut both sides."""

    after_bytes: int = 0


class Throttle(Struct, frozen=True):
    """Pass the request and its answer at this speed."""

    bytes_per_s: float


Fault = LoseAnswer | Delay | Hold | Respond | ReplaceAnswer | CutRequest | CutAnswer | Throttle


class Rule:
    """One fault and when it happens. Made by `FaultProxy.add`."""

    def __init__(
        self,
        fault: Fault,
        when: Callable[[Request], bool],
        *,
        skip: int,
        times: int | None,
        chance: float,
        rng: Random,
    ) -> None:
        self.fault = fault
        self.hits = 0
        """How many requests this rule was applied to."""
        self._when = when
        self._skip = skip
        self._left = times
        self._chance = chance
        self._rng = rng
        self._last: tuple[int, int] | None = None
        self._done = asyncio.Event()

    def applies(self, request: Request) -> bool:
        """Decide, and count. A request that grows chunk by chunk is matched at most once."""
        here = (request.connection, request.number)
        if self._left == 0 or self._last == here or not self._when(request):
            return False
        self._last = here
        if self._skip:
            self._skip -= 1
            return False
        if self._chance < 1.0 and self._rng.random() >= self._chance:
            return False
        if self._left is not None:
            self._left -= 1
        self.hits += 1
        return True

    def note_done(self) -> None:
        """The fault has had its effect. Called by the proxy."""
        self._done.set()

    async def wait_done(self) -> None:
        """Wait until the fault has had its whole effect for the first time, e.g. the answer is lost."""
        await self._done.wait()


def always(request: Request) -> bool:
    """Match every request."""
    return True


def client_sends(marker: bytes) -> Callable[[Request], bool]:
    """Match a request that contains these bytes."""
    return lambda request: marker in request.data


def http_request(method: str = "", path: str = "") -> Callable[[Request], bool]:
    """Match an HTTP request by its method and the beginning of its path; empty matches any."""
    return lambda request: method in ("", request.method) and request.path.startswith(path)


def executes(marker: str) -> Callable[[Request], bool]:
    """Match a PostgreSQL request that executes a statement containing this text, ignoring case."""
    wanted = marker.casefold()
    return lambda request: any(wanted in statement.casefold() for statement in request.statements)
