"""Events as CloudEvents 1.0 over HTTP, in structured mode: batches of them, or one by one.

With a secret every request is signed as Standard Webhooks has it: `webhook-signature` is the HMAC-SHA256 of
`webhook-id`, `webhook-timestamp` and the body, so receivers can check who sent it and refuse old ones.

Must not break: only 2xx counts as taken. Redirects are not followed: the address was checked by an operator,
and headers may hold credentials.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Final

import httpx
import msgspec
from msgspec import UNSET, Struct, UnsetType

from cynosure.auth.audit.events import Event
from cynosure.auth.settings import WebhookSettings
from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.common.secrets import Secret

_BATCH_TYPE: Final = "application/cloudevents-batch+json"
_SINGLE_TYPE: Final = "application/cloudevents+json"
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MOST_ANSWER_BYTES: Final = 64 * 1024
"""More of an answer is not read, and its connection not used again."""
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what such secrets begin with, not one of them


class CloudEvent(Struct, frozen=True, kw_only=True):
    """An event in the envelope of CloudEvents 1.0."""

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    time: str
    subject: str | UnsetType = UNSET
    datacontenttype: str = "application/json"
    data: Event


def to_cloud_event(event: Event, store_id: str) -> CloudEvent:
    """An event in its envelope. `id` and `source` together are the same whenever it is told."""
    name = event.targets[0].name if event.targets else ""
    return CloudEvent(
        id=event.id,
        source=f"/cynosure/{store_id}/realms/{event.realm}",
        type=f"cynosure.audit.{event.kind}",
        time=event.time,
        subject=name or UNSET,
        data=event,
    )


class WebhookSink:
    """Posts to one address."""

    name = "webhook"

    def __init__(self, settings: WebhookSettings, clock: Clock, store_id: str) -> None:
        self.most_events = settings.batch_events if settings.mode == "batch" else 1
        self._is_batch = settings.mode == "batch"
        self._clock = clock
        self._store_id = store_id
        self._key = None if settings.secret is None else _signing_key(settings.secret)
        self._timeout_s = settings.timeout.total_seconds()
        self._url = _parse_url(settings.url)
        self._headers = _parse_headers(settings.headers)
        # The transport itself: the library's client logs the address, which may hold a secret. A proxy from
        # the environment does not come between either.
        self._http = httpx.AsyncHTTPTransport()

    async def deliver(self, events: Sequence[Event]) -> None:
        """See `Sink.deliver`."""
        told = [to_cloud_event(event, self._store_id) for event in events]
        body = msgspec.json.encode(told if self._is_batch else told[0])
        headers = {"content-type": _BATCH_TYPE if self._is_batch else _SINGLE_TYPE}
        if self._key is not None:
            first, last = events[0], events[-1]
            message_id = f"{first.realm}.{first.id}" + (f"-{last.id}" if last is not first else "")
            headers |= sign(self._key, message_id, self._clock.now_us() // 1_000_000, body)
        try:
            # The library limits each read; a receiver that drips bytes would outlast the time.
            async with asyncio.timeout(self._timeout_s):
                status = await self._post(body, {**self._headers, **headers})
        except (httpx.HTTPError, TimeoutError) as error:
            # Without its text, which may quote the address.
            raise self._refused(type(error).__name__) from None
        if not 200 <= status < 300:
            raise self._refused(f"status {status}")

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> int:
        timeout = httpx.Timeout(self._timeout_s).as_dict()
        request = httpx.Request(
            "POST", self._url, content=body, headers=headers, extensions={"timeout": timeout}
        )
        answer = await self._http.handle_async_request(request)
        try:
            length = 0
            async for chunk in answer.aiter_raw():
                length += len(chunk)
                if length > _MOST_ANSWER_BYTES:
                    break
        finally:
            await answer.aclose()
        return answer.status_code

    async def close(self) -> None:
        """See `Sink.close`."""
        await self._http.aclose()

    def _refused(self, reason: str) -> Unavailable:
        return Unavailable(
            "The webhook for audit events did not take them",
            fix="Look into the receiver's log; it must answer 2xx. Delivery is tried again.",
            host=self._url.host,
            reason=reason,
        )


def sign(key: bytes, message_id: str, time_s: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows that a message is ours, and how old it is."""
    signed = f"{message_id}.{time_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(time_s),
        "webhook-signature": f"v1,{signature}",
    }


def _signing_key(secret: Secret) -> bytes:
    text = secret.reveal()
    if not text.startswith(_SECRET_PREFIX):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise _unusable("secret") from None


def _parse_url(url: Secret | None) -> httpx.URL:
    try:
        parsed = httpx.URL("" if url is None else url.reveal())
    except (httpx.InvalidURL, ValueError):
        # Without `from`: the cause quotes the address.
        raise _unusable("url") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise _unusable("url")
    return parsed


def _parse_headers(headers: Mapping[str, Secret]) -> dict[str, str]:
    parsed = {name.replace("_", "-"): value.reveal() for name, value in headers.items()}
    for name, value in parsed.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise _unusable("headers")
    return parsed


def _unusable(part: str) -> Misconfigured:
    return Misconfigured(
        "The webhook for audit events cannot be used as it is set",
        fix="Write an address with http or https, headers of ASCII text, and a secret as it was given out.",
        key=f"auth.audit.webhook.{part}",
    )
