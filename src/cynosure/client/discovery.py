"""Whether a server honours Idempotency-Keys, and for how long: asked once per catalog.

Servers say it in `GET /v1/config` of a catalog: in the maps `properties` and `defaults`, with two entries, or
with the protocol's own field. The management API has no catalog; our servers answer for it on a path of their
own, and a server that has no such path does not honour keys there.

Must not break: what is not said, or not said properly, is no. A wrong yes applies a change twice.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.client.errors import RequestRefused, ServerFailed
from cynosure.client.http import Reply
from cynosure.common.errors import BadInput, Forbidden, NotFound, OutcomeUnknown

CATALOG_PATH: Final = "/api/catalog/v1/config"
MANAGEMENT_PATH: Final = "/api/management/v1/cynosure/config"
SUPPORTED: Final = "idempotency-key-supported"
LIFETIME: Final = "idempotency-key-lifetime"

Fetch = Callable[[str, Mapping[str, str]], Awaitable[Reply]]
"""A `GET` of a path with a query."""

_NUMBER: Final = "[0-9]{1,9}"
_DURATION: Final = re.compile(
    f"P(?:({_NUMBER})W|(?=.)(?:({_NUMBER})D)?"
    f"(?:T(?=.)(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER}(?:[.,]{_NUMBER})?)S)?)?)"
)
_SECONDS: Final = (604_800, 86_400, 3_600, 60, 1)


class _Config(Struct, rename="kebab"):
    properties: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    idempotency_key_lifetime: Any = None


class Discovery:
    """What one server says about its catalogs and its management API."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[str | None, float | None] = {}
        self._asking = asyncio.Lock()

    async def find_lifetime_s(self, catalog: str | None) -> float | None:
        """How long a key is honoured in a catalog (`None`: in the management API); `None` when it is not."""
        async with self._asking:
            if catalog not in self._known:
                try:
                    self._known[catalog] = await self._ask(catalog)
                except (ServerFailed, OutcomeUnknown):
                    # It may say so next time. For this request it did not.
                    return None
            return self._known[catalog]

    async def _ask(self, catalog: str | None) -> float | None:
        try:
            if catalog is None:
                reply = await self._fetch(MANAGEMENT_PATH, {})
            else:
                reply = await self._fetch(CATALOG_PATH, {"warehouse": catalog})
        except (NotFound, BadInput, Forbidden, RequestRefused):
            return None
        return read_lifetime_s(reply.body)


def read_lifetime_s(config: bytes) -> float | None:
    """The lifetime that a config promises. Said twice, the shorter counts; one wrong word, and none does."""
    try:
        found = msgspec.json.decode(config, type=_Config)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    said: list[float | None] = []
    for entries in (found.properties, found.defaults):
        if SUPPORTED in entries or LIFETIME in entries:
            is_supported = entries.get(SUPPORTED) == "true"
            said.append(parse_lifetime_s(entries.get(LIFETIME)) if is_supported else None)
    if found.idempotency_key_lifetime is not None:
        said.append(parse_lifetime_s(found.idempotency_key_lifetime))
    good = [each for each in said if each is not None]
    return min(good) if good and len(good) == len(said) else None


def parse_lifetime_s(text: Any) -> float | None:
    """Seconds of an ISO-8601 duration above zero; `None` for all else.

    Months and years have no fixed length, so they are no promise.
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    parts = zip(match.groups(), _SECONDS, strict=True)
    seconds = sum(float(number.replace(",", ".")) * unit for number, unit in parts if number is not None)
    return seconds or None
