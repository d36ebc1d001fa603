"""A server that says what a test wrote down, and a clock that passes only by sleeping."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import msgspec

from cynosure.client.api import ApiClient
from cynosure.client.discovery import CATALOG_PATH, MANAGEMENT_PATH
from cynosure.client.http import HttpClient
from cynosure.client.idempotency import Keys
from cynosure.client.waiting import OnWait

PROMISE = {"idempotency-key-supported": "true", "idempotency-key-lifetime": "PT30M"}
HONOURED = msgspec.json.encode({"properties": PROMISE})

Answer = httpx.Response | type[httpx.TransportError]


class Hands:
    """A clock that moves while somebody sleeps, and when it is set."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.stepped_s = 0.0
        """How much further the wall clock is."""
        self.sleeps: list[float] = []

    def monotonic_s(self) -> float:
        return 1_000.0 + self.elapsed_s

    def now_us(self) -> int:
        return 1_800_000_000_000_000 + int((self.elapsed_s + self.stepped_s) * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.elapsed_s += seconds


class Scripted(httpx.AsyncBaseTransport):
    """Answers changes in turn, the last answer for ever; each attempt takes `attempt_s` of the clock."""

    def __init__(
        self, clock: Hands, *answers: Answer, config: bytes = HONOURED, config_status: int = 200
    ) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.config = config
        self.config_status = config_status
        self.attempt_s = 0.0
        self.configs: list[httpx.URL] = []
        self.seen: list[httpx.Request] = []
        self.before: Callable[[], None] = lambda: None
        """Called before each answer to a change."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path in (CATALOG_PATH, MANAGEMENT_PATH):
            self.configs.append(request.url)
            return httpx.Response(self.config_status, content=self.config)
        await request.aread()
        self.seen.append(request)
        self.clock.elapsed_s += self.attempt_s
        self.before()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        raise answer("scripted", request=request)

    @property
    def keys(self) -> list[str | None]:
        """The Idempotency-Key of each attempt."""
        return [each.headers.get("idempotency-key") for each in self.seen]

    @contextmanager
    def client(
        self, keys: Keys | None = None, *, is_patient: bool = True, on_wait: OnWait | None = None
    ) -> Iterator[ApiClient]:
        http = HttpClient(
            "http://test",
            clock=self.clock,
            rng=random.Random(1),
            transport=self,
            is_patient=is_patient,
            on_wait=on_wait,
        )
        yield ApiClient(http, keys=keys)


def refusal(status: int, type_: str, headers: dict[str, str] | None = None) -> httpx.Response:
    body = {"error": {"message": "Said the server", "type": type_, "code": status}}
    return httpx.Response(status, content=msgspec.json.encode(body), headers=headers)
