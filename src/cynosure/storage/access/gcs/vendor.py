"""Tokens of Google for clients, downscoped to the locations of a table.

A maintainer must not break: a client's token is made from a fresh one of ours, because it ends with that one.
"""

from typing import Final

from cynosure.storage.access.gcs.boundary import make_boundary
from cynosure.storage.access.gcs.tokens import LONGEST_LIFE_S, GcsTokens
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.config import GcsStorage
from cynosure.storage.errors import StorageUnavailable

_FRESH_MS: Final = LONGEST_LIFE_S * 1000 * 9 // 10


class GcsVendor:
    """Makes downscoped tokens. They have no place for a name: Google's log shows our service account only."""

    def __init__(self, tokens: GcsTokens) -> None:
        self._tokens = tokens

    async def mint(self, scope: Scope, subject: Subject) -> Vended:  # noqa: D102
        boundary = make_boundary(scope)
        own = await self._tokens.tokens.load(min_left_ms=_FRESH_MS)
        token = await self._tokens.exchange(own, boundary)
        if token.expires_ms <= token.issued_ms:
            raise StorageUnavailable(
                "The token service gave a token that has expired", fix="Set the clock of this machine."
            )
        config = {
            "gcs.oauth2.token": token.value.reveal(),
            "gcs.oauth2.token-expires-at": str(token.expires_ms),
        }
        credentials = tuple(Credential(location.text, config) for location in scope.locations)
        return Vended(credentials, token.issued_ms, token.expires_ms)


def client_config(config: GcsStorage) -> dict[str, str]:
    """What every client is told about the storage."""
    return {} if config.endpoint is None else {"gcs.service.host": config.endpoint}
