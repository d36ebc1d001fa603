"""Bounds on what one request may take: bytes, time to send them, time until the answer.

A maintainer must not break: the body is counted as it arrives, never trusted to be as long as its
header says; and the deadline is a value, not a cancellation (`asgi.DEADLINE_S`).
"""

import asyncio

from cynosure.api import asgi
from cynosure.api.asgi import App, Message, Receive, Scope, Send
from cynosure.api.errors import SlowRequest
from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, TooLarge


class Limits:
    """Refuses bodies that are too large or too slow, and gives the request its deadline."""

    def __init__(
        self, app: App, clock: Clock, *, max_body_bytes: int, body_timeout_s: float, request_timeout_s: float
    ) -> None:
        self._app = app
        self._monotonic_s = clock.monotonic_s
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s
        self._request_timeout_s = request_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application within the limits."""
        scope[asgi.DEADLINE_S] = self._monotonic_s() + self._request_timeout_s
        headers = asgi.headers_of(scope)
        # Without either header HTTP has no body, so there is nothing to limit.
        if b"content-length" in headers:
            self._check_announced(headers[b"content-length"])
            receive = self._limited(receive)
        elif b"transfer-encoding" in headers:
            receive = self._limited(receive)
        await self._app(scope, receive, send)

    def _check_announced(self, content_length: bytes) -> None:
        if not content_length.isdigit():
            raise BadInput(
                "Content-Length is not a number", field="Content-Length", fix="Send the length in bytes."
            )
        if len(content_length) > 18 or int(content_length) > self._max_body_bytes:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            "The body is larger than this server accepts",
            field="body",
            fix="Send less in one request, or raise server.max_body_bytes.",
            max_body_bytes=self._max_body_bytes,
        )

    def _limited(self, receive: Receive) -> Receive:
        seen_bytes = 0
        is_complete = False
        read_until_s = asyncio.get_running_loop().time() + self._body_timeout_s

        async def receive_limited() -> Message:
            nonlocal seen_bytes, is_complete
            if is_complete:
                # What follows the body is only the end of the connection; waiting for it is no fault.
                return await receive()
            try:
                async with asyncio.timeout_at(read_until_s):
                    message = await receive()
            except TimeoutError as error:
                raise SlowRequest(
                    "The body did not arrive in time",
                    fix="Send the body faster, or raise server.body_timeout_s.",
                    body_timeout_s=self._body_timeout_s,
                ) from error
            seen_bytes += len(message.get("body", b""))
            if seen_bytes > self._max_body_bytes:
                raise self._too_large()
            is_complete = not message.get("more_body", False)
            return message

        return receive_limited
