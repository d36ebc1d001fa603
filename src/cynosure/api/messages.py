"""Request and Response: all that a handler sees of HTTP.

A maintainer must not break: both are built for every request, so construction stays a handful of
attribute writes; whatever is not needed by each handler is computed when asked for.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from cynosure.api import asgi
from cynosure.api.asgi import Receive, Scope, Send, SendWhole

JSON = b"application/json"
NDJSON = b"application/x-ndjson"
NO_STORE = (b"cache-control", b"no-store")
"""Goes with every answer that holds a secret."""

_ANSWER_S = 1.0
"""What is left of a request's time for its answer."""
_encode = msgspec.json.Encoder().encode


class Request:
    """One HTTP request, after routing and decoding."""

    __slots__ = ("body", "params", "query", "receive", "scope")

    def __init__(self, scope: Scope, receive: Receive, params: Mapping[str, str]) -> None:
        self.scope = scope
        self.receive = receive
        self.params = params
        """Path parameters, percent-decoded per segment: a value may contain `/`."""
        self.body: Any = None
        """The decoded body, of the struct the route declares; `None` when it declares none."""
        self.query: Any = None
        """The decoded query string, of the struct the route declares; `None` when it declares none."""

    def find_header(self, name: bytes) -> str | None:
        """The first value of a header, given in lower case."""
        value = asgi.headers_of(self.scope).get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def method(self) -> str:
        """The method as sent; `HEAD` also when a `GET` route answers it."""
        method: str = self.scope["method"]
        return method

    @property
    def request_id(self) -> str:
        """The id that logs, metrics and the answer's `X-Request-ID` share. Empty without telemetry."""
        request_id: str = self.scope.get(asgi.REQUEST_ID, "")
        return request_id

    @property
    def deadline_s(self) -> float | None:
        """Monotonic time after which nobody waits for the answer any more."""
        deadline_s: float | None = self.scope.get(asgi.DEADLINE_S)
        return deadline_s

    def cut_wait_s(self, wanted_s: float, *, now_s: float) -> float:
        """How long of `wanted_s` a handler may wait from now on, and still answer in time."""
        deadline_s = self.deadline_s
        return wanted_s if deadline_s is None else max(0.0, min(wanted_s, deadline_s - now_s - _ANSWER_S))

    @property
    def client_certificate_pem(self) -> str | None:
        """The certificate the peer proved to own in the TLS handshake, verified against the client CA."""
        tls = self.scope.get("extensions", {}).get("tls")
        chain = tls["client_cert_chain"] if tls else ()
        return chain[0] if chain else None


class Response:
    """One HTTP answer: either `body`, or `chunks` streamed as they come."""

    __slots__ = ("body", "chunks", "headers", "status")

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        *,
        media_type: bytes = JSON,
        headers: list[tuple[bytes, bytes]] | None = None,
        chunks: AsyncIterator[bytes] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.chunks = chunks
        self.headers = headers if headers is not None else []
        if body or chunks is not None:
            self.headers.append((b"content-type", media_type))

    @classmethod
    def json(
        cls, value: Any, *, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
    ) -> "Response":
        """Encode a struct (or anything msgspec can encode) as JSON."""
        return cls(status, _encode(value), headers=headers)

    async def send(self, scope: Scope, send: Send) -> None:
        """Answer. After this began, an error can only cut the connection."""
        scope[asgi.STATUS] = self.status
        headers = self.headers
        request_id = scope.get(asgi.REQUEST_ID)
        if request_id is not None:
            headers.append((b"x-request-id", request_id.encode("ascii")))
        if self.chunks is None:
            if self.status not in (204, 304):
                headers.append((b"content-length", b"%d" % len(self.body)))
            body = b"" if scope["method"] == "HEAD" else self.body
            send_whole: SendWhole | None = scope.get(asgi.SEND_WHOLE)
            if send_whole is not None and send_whole(scope, self.status, headers, body):
                return
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if scope["method"] != "HEAD":
            async for chunk in self.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
