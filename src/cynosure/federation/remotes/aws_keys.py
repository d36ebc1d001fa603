"""Keys to sign requests to a remote with: those of the connection, or of a role that they assume.

A maintainer must not break: without keys in the connection there are none. The chains in which Amazon's own
packages look for some are never asked, and requests to the token service use no proxy of the environment.
"""

from collections.abc import Mapping
from typing import Final

import httpx

from cynosure.catalog.connection import ConnectionSecrets, SigV4
from cynosure.common.clock import Clock
from cynosure.federation.errors import RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes.failures import NO_TOKEN_SERVICE, ROLE_REFUSED
from cynosure.federation.remotes.renewing import Renewed
from cynosure.federation.remotes.transport import Answered, Transport
from cynosure.federation.remotes.urls import check_url
from cynosure.federation.settings import FederationSettings
from cynosure.storage.access.exchange import Answer
from cynosure.storage.access.s3.keys import S3KeySource, S3Session, StaticKeys
from cynosure.storage.access.s3.sts import AssumeRole, SecurityTokens
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_SESSION_NAME: Final = "cynosure-federation"
_MOST_ANSWER_BYTES: Final = 1 << 20
_SHORTEST_LIFE_S: Final = 60.0


def open_aws_keys(
    authentication: SigV4,
    secrets: ConnectionSecrets,
    settings: FederationSettings,
    clock: Clock,
    name: str,
) -> S3KeySource:
    """The keys of a connection; `name` is the catalog's. Nothing is asked before the first use."""
    if secrets.access_key_id is None or secrets.secret_access_key is None:
        raise RemoteUnavailable(name, reason="the connection has no access key")
    keys = StaticKeys(S3Session(secrets.access_key_id.reveal(), secrets.secret_access_key))
    if authentication.role_arn is None:
        return keys
    return RoleKeys(authentication, keys, settings, clock, name)


async def close_aws_keys(keys: S3KeySource) -> None:
    """End what is under way for them."""
    if isinstance(keys, RoleKeys):
        await keys.close()


class RoleKeys:
    """The keys of a role, renewed before they end."""

    def __init__(
        self,
        authentication: SigV4,
        keys: S3KeySource,
        settings: FederationSettings,
        clock: Clock,
        name: str,
    ) -> None:
        region = authentication.signing_region
        url = authentication.sts_endpoint or f"https://sts.{region}.amazonaws.com"
        check_url(url, settings, name)
        self._tokens = SecurityTokens(url, region, keys, _Exchange(settings), clock, retries=0)
        self._wanted = AssumeRole(
            authentication.role_session_name or _SESSION_NAME,
            authentication.session_policy or "",
            role_arn=authentication.role_arn,
            external_id=authentication.external_id,
        )
        self._clock = clock
        self._name = name
        self._renewed = Renewed(self._assume, clock)

    async def load(self) -> S3Session:
        """See `S3KeySource`; its errors are those of a remote."""
        return await self._renewed.get()

    async def close(self) -> None:
        """End what is under way."""
        await self._renewed.close()

    async def _assume(self) -> tuple[S3Session, float]:
        try:
            session = await self._tokens.assume(self._wanted)
        except StorageRefused as error:
            status = int(error.details.get("status", 403))
            raise RemoteRefused(self._name, status=status, reason=ROLE_REFUSED) from error
        except StorageUnavailable as error:
            raise RemoteUnavailable(self._name, reason=NO_TOKEN_SERVICE) from error
        life_s = (session.expires_ms or 0) / 1000 - self._clock.now_us() / 1_000_000
        return session, max(life_s, _SHORTEST_LIFE_S)


class _Exchange:
    """Requests to the token service, each with connections of its own: they are rare."""

    def __init__(self, settings: FederationSettings) -> None:
        self._settings = settings

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        transport = Transport(self._settings)
        try:
            answer = await transport.send(
                "POST", httpx.URL(url), headers=headers, body=body, limit=_MOST_ANSWER_BYTES
            )
        finally:
            await transport.close()
        if not isinstance(answer, Answered) or answer.status in (429, 500, 502, 503, 504):
            raise StorageUnavailable("The token service does not answer")
        return Answer(answer.status, answer.body)
