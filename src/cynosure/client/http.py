"""An HTTP client for one server.

A maintainer must not break: see `cynosure.client.retry`; what may have been applied is `OutcomeUnknown`
unless the request can be repeated.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

import httpx
import msgspec

from cynosure.client.errors import ServerFailed, to_error
from cynosure.client.retry import (
    REPEATABLE_METHODS,
    Failure,
    classify_error,
    classify_status,
    parse_retry_after_s,
)
from cynosure.client.tls import NO_TLS, ClientTls, make_context
from cynosure.client.waiting import Notice, OnWait
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff

T = TypeVar("T")

REPLAYED_HEADER: Final = "Idempotency-Replayed"
"""Set by a server that gives an answer again instead of doing the request again."""
_BEHIND_IT: Final = "BadGatewayException"
_IDLE_S = 30.0
"""Idle connections are given up before our server does (75 s): none is used while it is being closed."""


class Reply:
    """A complete answer with a status below 400."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: httpx.Headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def is_replayed(self) -> bool:
        """Whether this is the answer to an earlier attempt with the same Idempotency-Key."""
        return _is_replayed(self.headers)

    def decode(self, body_type: type[T]) -> T:
        """The JSON body as this type."""
        try:
            return msgspec.json.decode(self.body, type=body_type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerFailed(
                "The server's answer is not what was agreed",
                fix="Use a client and a server of matching versions.",
                reason=str(error),
            ) from error


class Failed(NamedTuple):
    """An attempt without a good answer."""

    failure: Failure | None
    """`None`: the server refused, and that is its answer."""
    error: CynosureError
    status: int = 0
    """0 when there was no answer at all."""
    retry_after_s: float = 0.0


class HttpClient:
    """Requests to one server, over TCP, TLS or a Unix socket."""

    def __init__(
        self,
        base_url: str,
        *,
        clock: Clock,
        rng: random.Random,
        tls: ClientTls | None = None,
        unix_socket: str | None = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout_s: float = 5.0,
        transport: httpx.AsyncBaseTransport | None = None,
        is_patient: bool = True,
        on_wait: OnWait | None = None,
    ) -> None:
        """`transport` replaces the network: an application in this process answers.

        `is_patient`: go on asking while nobody can be reached; a person at a terminal is told at once, and
        where that was.
        `on_wait` is told of requests that take long because the server says to come back later.
        """
        self.is_patient = is_patient
        self.on_wait = on_wait
        self.clock = clock
        self.rng = rng
        self._connect_timeout_s = connect_timeout_s
        self._where = {} if is_patient else {"url": base_url}
        is_tls = tls is not None or base_url.startswith("https:")
        # Our own processes on known addresses: a proxy from the environment must not come between.
        self._http = httpx.AsyncClient(
            base_url=base_url,
            transport=transport
            or httpx.AsyncHTTPTransport(
                verify=make_context(tls or ClientTls()) if is_tls else NO_TLS,
                uds=unix_socket,
                trust_env=False,
                limits=httpx.Limits(max_keepalive_connections=32, keepalive_expiry=_IDLE_S),
            ),
            headers=dict(headers or {}),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Use as `async with`, so that connections are closed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        request_id: str = "",
        is_repeatable: bool | None = None,
    ) -> Reply:
        """Send until answered, or until `timeout_s` has passed. Errors are those of our tree.

        `path` is percent-encoded already. `body` is sent as JSON, `form` as a form. `is_repeatable` says
        that the request may be applied twice (it carries an idempotency key); by default the method
        decides.
        """
        repeatable = method in REPEATABLE_METHODS if is_repeatable is None else is_repeatable
        backoff = Backoff(self.clock, self.rng, first_s=0.05, max_s=2.0, deadline_s=timeout_s)
        request = self._build(method, path, body, form, query, headers, request_id)
        may_be_applied, notice = False, Notice(self.clock, self.on_wait)
        while True:
            answer = await self._attempt(request, backoff.remaining_s)
            if isinstance(answer, Reply):
                return answer
            if answer.failure is None:
                raise answer.error
            if answer.failure is Failure.NOTHING_APPLIED and not answer.status and not self.is_patient:
                raise answer.error
            may_be_applied |= answer.failure is Failure.UNKNOWN and not _is_read(method)
            is_last = answer.failure is Failure.UNKNOWN and not repeatable
            pause_s, left_s = max(backoff.bound_s(), answer.retry_after_s), backoff.remaining_s
            if not is_last and pause_s < left_s:
                notice.give(answer.status, answer.error, pause_s=pause_s, left_s=left_s)
            if is_last or not await backoff.wait(at_least_s=answer.retry_after_s):
                raise _last_error(answer.error, may_be_applied=may_be_applied) from answer.error

    async def attempt(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Reply | Failed:
        """Send once. For callers that decide themselves what another attempt would do."""
        return await self._attempt(self._build(method, path, body, None, query, headers, ""), timeout_s)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, body: Any = None, request_id: str = ""
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send once and read the answer line by line as it comes, without a time limit."""
        request = self._build(method, path, body, None, None, None, request_id)
        request.extensions["timeout"] = httpx.Timeout(None, connect=self._connect_timeout_s).as_dict()
        try:
            response = await self._http.send(request, stream=True)
            try:
                if response.status_code >= 400:
                    raise to_error(
                        response.status_code,
                        await response.aread(),
                        is_read=method == "GET",
                        request_id=response.headers.get("x-request-id", ""),
                    )
                yield _lines(response)
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            _, ours = _translate(error, self._where)
            raise ours from error

    def _build(
        self,
        method: str,
        path: str,
        body: Any,
        form: Mapping[str, str] | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        request_id: str,
    ) -> httpx.Request:
        sent = dict(headers or {})
        if request_id:
            sent["x-request-id"] = request_id
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            sent["content-type"] = "application/json"
        return self._http.build_request(method, path, content=content, data=form, params=query, headers=sent)

    async def _attempt(self, request: httpx.Request, timeout_s: float) -> Reply | Failed:
        connect_s = min(self._connect_timeout_s, timeout_s)
        request.extensions["timeout"] = httpx.Timeout(timeout_s, connect=connect_s, pool=connect_s).as_dict()
        try:
            # httpx limits each read; a server that drips bytes would outlast the deadline.
            async with asyncio.timeout(timeout_s):
                answer = await self._http.send(request)
        except httpx.TransportError as error:
            return Failed(*_translate(error, self._where))
        except TimeoutError:
            return Failed(
                Failure.UNKNOWN,
                Unavailable("The server did not answer in time", fix="Try again, or allow more time."),
            )
        if answer.is_success or answer.is_redirect or answer.status_code == 304:
            return Reply(answer.status_code, answer.headers, answer.content)
        refusal = to_error(
            answer.status_code,
            answer.content,
            is_read=_is_read(request.method),
            request_id=answer.headers.get("x-request-id", ""),
            is_replayed=_is_replayed(answer.headers),
        )
        # In the server's own words, and not a gateway's: what it asked behind itself did not work.
        is_final = refusal.details.get("type") == _BEHIND_IT
        return Failed(
            None if is_final else classify_status(answer.status_code),
            refusal,
            answer.status_code,
            parse_retry_after_s(answer.headers.get("retry-after"), self.clock.now_us() / 1_000_000),
        )


def _is_read(method: str) -> bool:
    return method in ("GET", "HEAD", "OPTIONS")


def _is_replayed(headers: httpx.Headers) -> bool:
    return bool(headers.get(REPLAYED_HEADER, "").lower() == "true")


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _translate(error: httpx.TransportError, details: Mapping[str, str]) -> tuple[Failure, CynosureError]:
    failure = classify_error(error)
    if failure is Failure.NOTHING_APPLIED:
        message, fix = "The server cannot be reached", "Check that it runs and that the address is right."
    elif isinstance(error, httpx.TimeoutException):
        message, fix = "The server did not answer in time", "Try again, or allow more time."
    else:
        message, fix = "The connection to the server broke", "Check the server's log and try again."
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return failure, Unavailable(message, fix=fix, **details, reason=reason)


def _last_error(error: CynosureError, *, may_be_applied: bool) -> CynosureError:
    """What the caller is told when there is no further attempt."""
    if not may_be_applied or isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(
        "The server may or may not have applied the request",
        fix="Look at the current state before sending it again.",
        reason=str(error),
    )
