"""Where the keys to an S3 store come from: set by an operator, or those of a role that is assumed.

The server's own files, requests to the token service and signatures all take their keys here, so there is one
place that renews them.

A maintainer must not break: keys come from the catalog's configuration or from the server's settings, never
from the environment, instance metadata or files of a home directory.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope, Subject, Vended
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_KEY_ID: Final = "s3.access-key-id"
_SECRET: Final = "s3.secret-access-key"  # noqa: S105 - the name of a property
_TOKEN: Final = "s3.session-token"  # noqa: S105 - the name of a property
_EXPIRES: Final = "s3.session-token-expires-at-ms"
_SPARE_S: Final = 60.0
"""Keys with less than this left are not begun anything with."""


class S3Session(Struct, frozen=True):
    """Keys, and for how long they are good."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None = None
    """Only of keys that were given for a while."""
    expires_ms: int | None = None
    """`None`: until somebody changes them."""

    def to_properties(self) -> dict[str, str]:
        """As the properties of a client's FileIO, in clear."""
        found = {_KEY_ID: self.access_key_id, _SECRET: self.secret_access_key.reveal()}
        if self.session_token is not None:
            found[_TOKEN] = self.session_token.reveal()
        if self.expires_ms is not None:
            found[_EXPIRES] = str(self.expires_ms)
        return found

    @classmethod
    def from_properties(cls, found: Mapping[str, str]) -> "S3Session":
        """What `to_properties` was made from."""
        token, expires = found.get(_TOKEN), found.get(_EXPIRES)
        return cls(
            found[_KEY_ID],
            Secret(found[_SECRET]),
            None if token is None else Secret(token),
            None if expires is None else int(expires),
        )


class S3KeySource(Protocol):
    """Gives keys that are good now."""

    async def load(self) -> S3Session:
        """The keys. `StorageRefused` when there are none, `StorageUnavailable` when none can be had now."""
        ...


class StaticKeys:
    """Keys that somebody has set."""

    def __init__(self, session: S3Session) -> None:
        self._session = session

    async def load(self) -> S3Session:  # noqa: D102
        return self._session


class NoKeys:
    """No keys, and why."""

    def __init__(
        self,
        message: str = "The catalog's storage has no access key",
        *,
        fix: str = "Have an access key set with the catalog's storage; none is taken from elsewhere.",
    ) -> None:
        self._message = message
        self._fix = fix

    async def load(self) -> S3Session:  # noqa: D102
        raise StorageRefused(self._message, fix=self._fix)


class AssumedRole:
    """The keys of a role, limited to a scope, renewed when half of their life is over.

    Those at hand serve while new ones are on their way, so that neither a commit nor a signature waits for
    the token service, or fails with it, as long as there are any that are good.
    """

    def __init__(self, vending: Vending, scope: Scope, subject: Subject, clock: Clock) -> None:
        self._vending = vending
        self._scope = scope
        self._subject = subject
        self._clock = clock
        self._last: Vended | None = None
        self._good_until_s = 0.0

    async def load(self) -> S3Session:  # noqa: D102
        vended = self._vending.get(self._scope, self._subject)
        if vended is None and self._is_last_good():
            vended = self._last
            with suppress(StorageRefused, StorageUnavailable):
                self._vending.renew(self._scope, self._subject)
        if vended is None:
            vended = await self._vending.vend(self._scope, self._subject)
        if vended is not self._last:
            self._last = vended
            life_s = (vended.expires_ms - vended.issued_ms) / 1000
            self._good_until_s = self._clock.monotonic_s() + life_s - _SPARE_S
        return S3Session.from_properties(vended.credentials[0].config)

    def _is_last_good(self) -> bool:
        if self._last is None or self._clock.monotonic_s() >= self._good_until_s:
            return False
        return self._clock.now_us() // 1000 < self._last.expires_ms - _SPARE_S * 1000
