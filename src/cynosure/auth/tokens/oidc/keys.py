"""The keys that another issuer publishes, fetched when needed and kept while it cannot be reached.

Must not break: however many tokens name keys that do not exist, the issuer is asked at most every few
seconds; and its discovery document is believed only if it names exactly the issuer that the settings name.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, cast

import msgspec
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError
from msgspec import Struct

from cynosure.auth.tokens.jws import PublicKey, fits
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log

MIN_INTERVAL_S: Final = 15.0
"""Between two attempts to fetch."""
REFRESH_S: Final = 600.0
"""Keys of this age are fetched again, so that one that the issuer took away is not believed for long."""
KEPT_S: Final = 86_400.0
"""How long keys are believed while the issuer cannot be reached."""
_MOST_KEYS: Final = 100
_READERS: Final[dict[str, Any]] = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}

Fetch = Callable[[str], Awaitable[bytes]]
_log = Log(__name__)


class _Discovery(Struct):
    issuer: str
    jwks_uri: str


class _KeySet(Struct):
    keys: list[dict[str, Any]]


class _Published(NamedTuple):
    kid: str
    algorithm: str | None
    """The only one that it is meant for; `None` when the issuer does not say."""
    key: PublicKey


class IssuerKeys:
    """The published keys of one issuer."""

    def __init__(
        self,
        issuer: str,
        jwks_uri: str,
        fetch: Fetch,
        clock: Clock,
        *,
        min_interval_s: float = MIN_INTERVAL_S,
    ) -> None:
        self._min_interval_s = min_interval_s
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._fetch = fetch
        self._monotonic_s = clock.monotonic_s
        self._keys: list[_Published] = []
        self._fetched_s = float("-inf")
        self._tried_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> PublicKey | None:
        """The key of this id, for this algorithm; without an id the only one that fits. `None`: no such key.

        `Unavailable` when there are no keys to look in.
        """
        age_s = self._monotonic_s() - self._fetched_s
        found = self._get(kid, algorithm) if age_s < KEPT_S else None
        if found is None:
            await self._refresh()
            found = self._get(kid, algorithm)
        elif age_s >= REFRESH_S:
            # Nobody waits for it: the keys at hand are still believed.
            self._begin()
        return found

    async def close(self) -> None:
        """End what is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _get(self, kid: str | None, algorithm: str) -> PublicKey | None:
        fitting = [
            each.key
            for each in self._keys
            if kid in (None, each.kid) and each.algorithm in (None, algorithm) and fits(algorithm, each.key)
        ]
        return fitting[0] if len(fitting) == 1 else None

    async def _refresh(self) -> None:
        fetching = self._begin()
        if fetching is not None:
            await asyncio.shield(fetching)
        if self._monotonic_s() - self._fetched_s >= KEPT_S:
            raise Unavailable(
                "The keys of the token's issuer cannot be fetched now",
                fix="Try again; the server's log says what is in the way.",
                issuer=self._issuer,
            )

    def _begin(self) -> asyncio.Task[None] | None:
        """Begin to fetch, unless that is under way or was tried a moment ago."""
        if self._fetching is None and self._monotonic_s() - self._tried_s >= self._min_interval_s:
            self._tried_s = self._monotonic_s()
            self._fetching = asyncio.create_task(self._fetch_keys())
        return self._fetching

    async def _fetch_keys(self) -> None:
        try:
            uri = self._jwks_uri or await self._discover()
            keys = msgspec.json.decode(await self._fetch(uri), type=_KeySet).keys
            self._keys = [read for each in keys[:_MOST_KEYS] if (read := _read_key(each)) is not None]
            self._fetched_s = self._monotonic_s()
        except (CynosureError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            _log.event("oidc.keys_not_fetched", level=WARNING, error=error, issuer=self._issuer)
        finally:
            self._fetching = None

    async def _discover(self) -> str:
        document = await self._fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        said = msgspec.json.decode(document, type=_Discovery)
        if said.issuer != self._issuer:
            raise Unavailable(
                "The discovery document is of another issuer",
                fix="Set auth.oidc.NAME.issuer to exactly what the document says.",
                says=said.issuer[:200],
            )
        return said.jwks_uri


def _read_key(jwk: dict[str, Any]) -> _Published | None:
    """A key that can check signatures. Anything else in the set is not for us."""
    kid, reader, algorithm = jwk.get("kid", ""), _READERS.get(str(jwk.get("kty"))), jwk.get("alg")
    is_for_signing = jwk.get("use", "sig") == "sig" and "verify" in jwk.get("key_ops", ("verify",))
    if reader is None or not is_for_signing or "d" in jwk or not isinstance(kid, str):
        return None
    if algorithm is not None and not isinstance(algorithm, str):
        return None
    try:
        return _Published(kid, algorithm, cast("PublicKey", reader.from_jwk(jwk)))
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
