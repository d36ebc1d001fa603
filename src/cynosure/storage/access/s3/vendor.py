"""From a scope to a session of S3 that reaches exactly this.

A maintainer must not break: a session is never asked for without a policy, and two principals never share a
session name, because the store's own log tells them apart by nothing else.
"""

import hashlib
import re
from typing import Final
from urllib.parse import urlsplit

from msgspec import structs

from cynosure.common.clock import Clock
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.s3.keys import S3KeySource, S3Session, StaticKeys
from cynosure.storage.access.s3.session_policy import Dialect, session_policy
from cynosure.storage.access.s3.sts import AssumeRole, SecurityTokens
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.settings import StorageSettings

_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")
_BAD_POLICY: Final = frozenset({"InvalidParameterValue", "MalformedPolicyDocument"})
_NOT_IN_NAME: Final = re.compile(r"[^\w+=,.@-]", re.ASCII)
_NOT_IN_TAG: Final = re.compile(r"[^\w+=.:/@ -]", re.ASCII)
_NAME_CHARACTERS: Final = 42
_TAG_CHARACTERS: Final = 256


class S3Vendor:
    """Credentials of the token service of one storage."""

    def __init__(self, config: S3Storage, keys: S3KeySource, settings: StorageSettings, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._duration_s = round(settings.credential_lifetime.total_seconds())
        self._is_tagged = settings.session_tags
        self._dialect = dialect_of(config)
        self._kms_keys = kms_keys_of(config)
        self._tokens = SecurityTokens(
            sts_url(config), config.region, keys, TokenService(settings), clock, retries=settings.retries
        )

    async def mint(self, scope: Scope, subject: Subject) -> Vended:  # noqa: D102
        now_ms = self._clock.now_us() // 1000
        session = await self._assume(scope, subject)
        if session.expires_ms is None or session.expires_ms <= now_ms:
            raise StorageUnavailable(
                "The token service gave credentials that have expired",
                fix="Set the clocks of this machine and of the store.",
            )
        # Where the store's clock is ahead of ours, they would seem to live longer than anybody asked for.
        issued_ms = max(now_ms, session.expires_ms - self._duration_s * 1000)
        properties = session.to_properties()
        credentials = tuple(Credential(each.text, properties) for each in scope.locations)
        return Vended(credentials, issued_ms, session.expires_ms)

    async def _assume(self, scope: Scope, subject: Subject) -> S3Session:
        try:
            return await self._assume_in(self._dialect, scope, subject)
        except StorageRefused as error:
            if not self._dialect.has_roles or error.details.get("code") not in _BAD_POLICY:
                raise
            # MinIO takes the name of a role, has none, and knows no such action in a policy.
            plain = structs.replace(self._dialect, has_roles=False)
            session = await self._assume_in(plain, scope, subject)
            await self._require_confined(session, subject)
            self._dialect = plain
            return session

    async def _require_confined(self, session: S3Session, subject: Subject) -> None:
        """Refuse a store that would let a session out of its policy, and takes no rule against it."""
        nothing = session_policy(Scope((), is_writable=False), Dialect())
        try:
            await self._tokens.asked_by(StaticKeys(session)).assume(
                AssumeRole(session_name(subject), nothing, role_arn=self._config.sts.role_arn)
            )
        except StorageRefused:
            return
        raise StorageRefused(
            "A session of this store can assume its role again, without a policy",
            fix="Let the role be assumed by the catalog's own key only, or set stsUnavailable.",
        )

    async def _assume_in(self, dialect: Dialect, scope: Scope, subject: Subject) -> S3Session:
        return await self._tokens.assume(
            AssumeRole(
                session_name=session_name(subject),
                policy=session_policy(scope, dialect, kms_keys=self._kms_keys),
                duration_s=self._duration_s,
                role_arn=self._config.sts.role_arn,
                external_id=self._config.sts.external_id,
                tags=session_tags(subject) if self._is_tagged else {},
            )
        )


def can_vend(config: S3Storage) -> bool:
    """Whether there is somebody to ask: Amazon gives credentials of roles only."""
    return not config.sts.is_unavailable and (config.sts.role_arn is not None or not is_amazon(config))


def client_config(config: S3Storage) -> dict[str, str]:
    """What every client is told about the store."""
    found = {"client.region": config.region}
    if config.endpoint is not None:
        found["s3.endpoint"] = config.endpoint
    if config.path_style_access:
        found["s3.path-style-access"] = "true"
    return found


def is_amazon(config: S3Storage) -> bool:
    """Whether every endpoint of it is Amazon's own."""
    given = (config.endpoint, config.endpoint_internal, config.sts.endpoint)
    return all((urlsplit(url).hostname or "").endswith(_AMAZON) for url in given if url is not None)


def sts_url(config: S3Storage) -> str:
    """The address of the token service."""
    url = config.sts.endpoint
    if url is None and not is_amazon(config):
        url = config.endpoint_internal or config.endpoint
    domain = "amazonaws.com.cn" if config.region.startswith("cn-") else "amazonaws.com"
    return url or f"https://sts.{config.region}.{domain}"


def dialect_of(config: S3Storage) -> Dialect:
    """How its policies are read."""
    role = config.sts.role_arn
    return Dialect(
        partition=role.split(":")[1] if role else "aws",
        has_escapes=is_amazon(config),
        has_roles=role is not None,
    )


def kms_keys_of(config: S3Storage) -> tuple[str, ...]:
    """The keys that files may be encrypted with, as far as policies may speak of them."""
    kms = config.kms
    if kms.is_unavailable:
        return ()
    current = () if kms.current_key is None else (kms.current_key,)
    return tuple(dict.fromkeys((*current, *kms.allowed_keys)))


def session_name(subject: Subject) -> str:
    """What the store's log calls a session: the principal's name as far as it can be written, and a hash."""
    # Another length of realm and id must not give the same text.
    identity = repr((subject.realm, subject.principal_id, subject.principal)).encode()
    unique = hashlib.blake2b(identity, digest_size=6).hexdigest()
    return f"cynosure-{_NOT_IN_NAME.sub('_', subject.principal)[:_NAME_CHARACTERS]}-{unique}"


def session_tags(subject: Subject) -> dict[str, str]:
    """For whom and for what, for the rules and bills of the store's owner."""
    found = {
        "cynosure-realm": subject.realm,
        "cynosure-catalog": subject.catalog,
        "cynosure-table": subject.table,
        "cynosure-principal": subject.principal,
    }
    return {name: _NOT_IN_TAG.sub("_", value)[:_TAG_CHARACTERS] for name, value in found.items()}
