"""A network that loses every fifth answer after the server acted, for clients as people run them.

A maintainer must not break: an answer is lost only after the server gave it, so every loss is a change that
the client knows nothing of; nothing else is disturbed, so whatever goes wrong comes from that.
"""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import requests
from pyiceberg.catalog import Catalog
from requests.adapters import HTTPAdapter

from cynosure.testing.catalog_server import CatalogServer, RestCatalog
from cynosure.testing.harness.faults import CutAnswer, Fault, LoseAnswer, Request, Respond, Rule, http_request
from cynosure.testing.harness.http_proxy import MUTATIONS, HttpProxy, is_mutation, run_http_proxy
from tests.engines.pyiceberg_client import connect

ENDS: dict[Fault, float] = {LoseAnswer(): 0.1, LoseAnswer(is_polite=True): 0.1}
"""The connection ends without a byte of the answer: how, and for what share of the mutations."""
ALL_LOSSES: dict[Fault, float] = {
    LoseAnswer(): 0.06,
    LoseAnswer(is_polite=True): 0.06,
    CutAnswer(after_bytes=1): 0.06,
    LoseAnswer(hangs=True): 0.02,
}
GIVES_UP_S = 10.0
"""How long clients wait for an answer here."""
SETTLES_S = 30.0
"""When at the latest a request has happened whose client gave up."""


class LossyServer:
    """A server behind a network that loses answers."""

    def __init__(self, server: CatalogServer, proxy: HttpProxy, rng: random.Random) -> None:
        self.rng = rng
        """For those who write through it, so that one seed decides a whole run."""
        self._server = server
        self._proxy = proxy
        self._rules: list[Rule] = []

    def lead(self, rest: RestCatalog) -> RestCatalog:
        """The same catalog through this network; logins go straight."""
        return RestCatalog(rest.uri.replace(self._server.url, self._proxy.url), rest.properties)

    def lose(self, shares: dict[Fault, float]) -> None:
        """Lose answers to mutations from now on; for sure the next one, so that no run is without."""
        certain = next(iter(shares))
        self._rules.append(self._proxy.add(certain, when=changes_something))
        spared = 1.0
        for fault, share in shares.items():
            # A rule only sees what the rules before it spared.
            self._rules.append(
                self._proxy.add(fault, when=changes_something, times=None, chance=share / spared)
            )
            spared -= share

    def hide_keys(self, rest: RestCatalog) -> None:
        """Tell clients nothing of keys, so that those which would send them by themselves do not."""
        answer = httpx.get(
            f"{rest.uri}/v1/config",
            params={"warehouse": rest.properties["warehouse"]},
            headers={"Authorization": f"Bearer {self._server.token()}"},
            trust_env=False,
        )
        config = answer.raise_for_status().json()
        del config["idempotency-key-lifetime"]
        headers = (("content-type", "application/json"),)
        asks = http_request("GET", f"{urlsplit(rest.uri).path}/v1/config")
        self._proxy.add(Respond(200, json.dumps(config).encode(), headers), when=asks, times=None)

    def record(self) -> list[Request]:
        """The mutations that come from now on; ask before answers get lost."""
        return self._proxy.record(changes_something)

    def cut_tables(self, share: float) -> None:
        """Cut answers in their body, where it is long enough for that."""
        rule = self._proxy.add(CutAnswer(after_bytes=600), when=returns_table, times=None, chance=share)
        self._rules.append(rule)

    @property
    def lost(self) -> int:
        """How many answers were lost."""
        return sum(rule.hits for rule in self._rules)


def happens(effect: Callable[[], bool]) -> bool:
    """Whether a request that was not answered has its effect: at once, unless its client gave up early."""
    end = time.monotonic() + SETTLES_S
    while not (is_there := effect()) and time.monotonic() < end:
        time.sleep(0.1)
    return is_there


@contextmanager
def open_lossy(server: CatalogServer, rng: random.Random) -> Iterator[LossyServer]:
    with run_http_proxy(server.url, seed=rng.getrandbits(32)) as proxy:
        yield LossyServer(server, proxy, rng)


def changes_something(request: Request) -> bool:
    return is_mutation(request) and not request.path.endswith("/metrics")


def returns_table(request: Request) -> bool:
    """Creates or commits."""
    parts = request.path.partition("?")[0].split("/")
    return request.method == "POST" and "namespaces" in parts and "tables" in parts[-2:]


NO_ANSWER = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
TOKEN_EXPIRED = 419


class Impatient(HTTPAdapter):
    """Gives up on an answer that does not come, as a client with a timeout does."""

    def send(self, request: requests.PreparedRequest, *args: object, **options: object) -> requests.Response:
        return super().send(request, **{**options, "timeout": GIVES_UP_S})  # type: ignore[arg-type]


class HoldsKeys(Impatient):
    """Gives each mutation a key, and sends the same request again until it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.resent = 0
        """Requests whose answer was lost and that were sent again."""
        self.done_again: list[str] = []
        """Those of them whose answer does not say that it is the first outcome."""
        self._held: dict[tuple[object, ...], tuple[str, bool]] = {}
        """Keys of requests that were turned away at the door, to be sent again after a login; and whether an
        earlier answer was lost."""

    def send(self, request: requests.PreparedRequest, *args: object, **options: object) -> requests.Response:
        if request.method not in MUTATIONS or "/oauth/tokens" in str(request.url):
            return super().send(request, **options)
        change = (request.method, request.url, request.body)
        key, is_again = self._held.pop(change, (str(uuid.uuid4()), False))
        request.headers["Idempotency-Key"] = key
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                answer = super().send(request, **options)
                _ = answer.content  # later, nobody could ask again
            except NO_ANSWER:
                is_again = True
                continue
            if answer.status_code in (requests.codes.unauthorized, TOKEN_EXPIRED):
                self._held[change] = (key, is_again)
                return answer
            if not is_open(answer):
                self.resent += is_again
                if is_again and answer.headers.get("Idempotency-Replayed") != "true":
                    self.done_again.append(f"{request.method} {request.url}: {answer.status_code}")
                return answer
            time.sleep(float(answer.headers.get("Retry-After", "0.1")))
        raise requests.Timeout(f"{request.method} {request.url} has no outcome")


def is_open(answer: requests.Response) -> bool:
    """Whether the outcome is still to come."""
    if answer.status_code == requests.codes.conflict:
        return bool(answer.json()["error"]["type"] == "request_in_progress")
    return answer.status_code >= requests.codes.internal_server_error


@contextmanager
def connect_with(rest: RestCatalog, adapter: HTTPAdapter) -> Iterator[Catalog]:
    """PyIceberg with requests that are sent this way."""
    with connect(rest) as catalog:
        catalog._session.mount("http://", adapter)  # type: ignore[attr-defined]
        yield catalog
