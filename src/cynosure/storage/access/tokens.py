"""What clouds give for a while, kept and renewed in time.

The files of the server itself and credentials for clients take their tokens from the same place, so there is
one that renews them.

A maintainer must not break: whoever waits for a new one makes nobody wait who could do with the old one, and
a refusal says which service refused and its short code, never what was sent or answered.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import Answer
from cynosure.storage.errors import StorageRefused

_CODE: Final = re.compile(r"[A-Za-z0-9_. -]{1,64}")


class Expiring(Protocol):
    """Something that is good for a while."""

    @property
    def issued_ms(self) -> int: ...  # noqa: D102
    @property
    def expires_ms(self) -> int: ...  # noqa: D102


T = TypeVar("T", bound=Expiring)


class Token(Struct, frozen=True):
    """An access token."""

    value: Secret
    issued_ms: int
    expires_ms: int


class Renewed(Generic[T]):
    """The newest of its kind. One request for a new one, however many wait for it."""

    def __init__(self, fetch: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._kept: T | None = None
        self._kept_s = 0.0
        """When it came, by the clock that nobody sets."""
        self._fetching: asyncio.Task[T] | None = None

    def get(self) -> T | None:
        """What was loaded last, whether it is still good or not."""
        return self._kept

    async def load(self, *, min_left_ms: int) -> T:
        """One that is good for so long, or nearly as long as it was when it was given."""
        kept = self._kept
        if kept is not None:
            life_ms = kept.expires_ms - kept.issued_ms
            aged_ms = round((self._clock.monotonic_s() - self._kept_s) * 1000)
            left_ms = min(kept.expires_ms - self._clock.now_us() // 1000, life_ms - aged_ms)
            if left_ms >= min(min_left_ms, life_ms * 9 // 10):
                return kept
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._renew())
            # Looked at here too: everybody who waited may have given up.
            self._fetching.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Shielded: one who gives up does not take it from the others who wait.
        return await asyncio.shield(self._fetching)

    async def _renew(self) -> T:
        try:
            self._kept = await self._fetch()
            self._kept_s = self._clock.monotonic_s()
            return self._kept
        finally:
            self._fetching = None


async def refuse_without_keys() -> Token:
    """What a storage has instead of a token while nobody has given it keys."""
    raise StorageRefused(
        "The catalog's storage has no keys",
        fix="Have keys set with the catalog's storage; none are taken from elsewhere.",
    )


class _Grant(Struct):
    access_token: str
    expires_in: int | None = None


class _Refusal(Struct):
    error: str | dict[str, object] = ""
    """OAuth's code, or Google's object that holds it."""


def read_token(answer: Answer, url: str, now_ms: int, *, expires_ms: int | None = None) -> Token:
    """The token that a service of OAuth has granted. `expires_ms` is for one that does not say it."""
    grant = decode_answer(answer, url, _Grant)
    if grant.expires_in is not None:
        expires_ms = now_ms + grant.expires_in * 1000
    if expires_ms is None:
        raise _refused(url, answer.status, "no expiry")
    return Token(Secret(grant.access_token), now_ms, expires_ms)


S = TypeVar("S")


def decode_answer(answer: Answer, url: str, type_: type[S]) -> S:
    """A successful answer in JSON. `StorageRefused` for every other one."""
    if not answer.is_success:
        raise _refused(url, answer.status, _code_of(answer.body))
    try:
        return msgspec.json.decode(answer.body, type=type_, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refused(url, answer.status, "not understood") from error


def _code_of(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    code = error.get("status", "") if isinstance(error, dict) else error
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""


def _refused(url: str, status: int, code: str) -> StorageRefused:
    return StorageRefused(
        "A service that gives tokens for a storage refused the catalog's keys",
        host=urlsplit(url).netloc,
        status=status,
        code=code,
        fix="Check the keys in the catalog's storage configuration, and what they are allowed to do.",
    )
