"""The fault proxy for clients that block: PyIceberg, Spark, anything without an event loop.

    with run_http_proxy(server.url, seed=7) as proxy:
        proxy.add(LoseAnswer(), when=is_mutation, times=None, chance=0.2)
        … let the client use proxy.url …

What it can do to a request is in `faults`: lose the answer after the server acted (by a reset, by a polite
end, or by silence until the client gives up), cut it, delay it, replace it by another one, or answer in the
server's place.

A maintainer must not break: rules are only touched in the thread that the proxy runs in, so what they count
is exact; when the block ends, thread and sockets are gone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from anyio.from_thread import BlockingPortal, start_blocking_portal

from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Fault, Request, Respond, Rule, always

MUTATIONS = frozenset({"POST", "PUT", "DELETE"})


class HttpProxy:
    """A `FaultProxy` that is told what to do from another thread."""

    def __init__(self, proxy: FaultProxy, portal: BlockingPortal) -> None:
        self._proxy = proxy
        self._portal = portal

    @property
    def url(self) -> str:
        """The server's URL, leading through this proxy."""
        return self._proxy.url

    def add(
        self,
        fault: Fault,
        *,
        when: Callable[[Request], bool] = always,
        skip: int = 0,
        times: int | None = 1,
        chance: float = 1.0,
    ) -> Rule:
        """As `FaultProxy.add`; in force when this returns."""

        def add() -> Rule:
            return self._proxy.add(fault, when=when, skip=skip, times=times, chance=chance)

        return self._portal.call(add)

    def record(self, when: Callable[[Request], bool] = always) -> list[Request]:
        """The requests that match from now on, in their order; the list grows.

        It misses those that an earlier rule applies to.
        """
        seen: list[Request] = []

        def note(request: Request) -> bool:
            if when(request):
                seen.append(request)
            return False

        self.add(Respond(), when=note, times=None)
        return seen

    def clear(self) -> None:
        """Forget all rules; later requests pass, and records end."""
        self._portal.call(self._proxy.clear)


@contextmanager
def run_http_proxy(url: str, *, seed: int = 0) -> Iterator[HttpProxy]:
    """A proxy before the server of this URL. The same requests, in the same order, meet the same faults."""
    with start_blocking_portal() as portal:
        proxy = FaultProxy.to_url(url, rng=Random(seed))
        with portal.wrap_async_context_manager(proxy):
            yield HttpProxy(proxy, portal)


def is_mutation(request: Request) -> bool:
    """Match what can change something; a login does not."""
    return request.method in MUTATIONS and not request.path.partition("?")[0].endswith("/oauth/tokens")


def find_header(request: Request, name: str) -> str | None:
    """A header of an HTTP request by its name in any case."""
    head = request.data.partition(b"\r\n\r\n")[0].decode("latin-1")
    for line in head.split("\r\n")[1:]:
        found, _, value = line.partition(":")
        if found.casefold() == name.casefold():
            return value.strip()
    return None
