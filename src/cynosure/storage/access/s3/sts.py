"""One request to Amazon's token service, or to a store that has one like it: `AssumeRole`.

A maintainer must not break: a refusal of the service is `StorageRefused` with its short code and nothing else
of its answer; no answer is `StorageUnavailable`. An answer is parsed without entities, so that a store cannot
make us expand any.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit
from xml.parsers import expat

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import Answer
from cynosure.storage.access.s3.keys import S3KeySource, S3Session
from cynosure.storage.access.s3.sigv4 import amz_date, authorize
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_CODE: Final = re.compile(r"[A-Za-z0-9_.]{1,64}")
_BUSY: Final = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "SlowDown", "RequestTimeout"}
)
_FIRST_PAUSE_S: Final = 0.1


class AssumeRole(Struct, frozen=True):
    """What is asked for."""

    session_name: str
    policy: str = ""
    """Narrows the session; empty: it may do all that the role may."""
    duration_s: int | None = None
    """Left out: as long as the service gives to whoever does not say."""
    role_arn: str | None = None
    """Not every store has roles: there, whoever asks gets a part of what it may do itself."""
    external_id: str | None = None
    tags: Mapping[str, str] = {}


class Exchange(Protocol):
    """Who sends requests to the service: `TokenService`, or what is like it."""

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer, be it a refusal. `StorageUnavailable` when there is none."""
        ...


class SecurityTokens:
    """A token service, asked as somebody."""

    def __init__(
        self, url: str, region: str, keys: S3KeySource, service: Exchange, clock: Clock, *, retries: int
    ) -> None:
        self._url = f"{url.removesuffix('/')}/"
        self._host = urlsplit(url).netloc
        self._region = region
        self._keys = keys
        self._service = service
        self._clock = clock
        self._retries = retries

    def asked_by(self, keys: S3KeySource) -> "SecurityTokens":
        """The same service, asked as somebody else."""
        return SecurityTokens(
            self._url, self._region, keys, self._service, self._clock, retries=self._retries
        )

    async def assume(self, wanted: AssumeRole) -> S3Session:
        """A session. The request changes nothing, so it is repeated when the service does not answer."""
        body = urlencode(_parameters(wanted)).encode()
        for attempt in range(self._retries):
            try:
                return await self._ask(body)
            except StorageUnavailable:
                # One caller waits here for all who want the same, so there is no crowd to spread.
                await self._clock.sleep(_FIRST_PAUSE_S * 2**attempt)
        return await self._ask(body)

    async def _ask(self, body: bytes) -> S3Session:
        keys = await self._keys.load()
        digest = hashlib.sha256(body).hexdigest()
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "host": self._host,
            "x-amz-date": amz_date(self._clock.now_us()),
        }
        if keys.session_token is not None:
            headers["x-amz-security-token"] = keys.session_token.reveal()
        headers["authorization"] = authorize(
            keys,
            method="POST",
            path="/",
            query="",
            signed=headers,
            payload_sha256=digest,
            region=self._region,
            service="sts",
        )
        answer = await self._service.post(self._url, headers=headers, body=body)
        fields = _read_fields(answer.body)
        if not answer.is_success:
            raise self._refused(answer.status, fields.get("Code", ""))
        try:
            return S3Session(
                fields["AccessKeyId"],
                Secret(fields["SecretAccessKey"]),
                Secret(fields["SessionToken"]),
                round(datetime.fromisoformat(fields["Expiration"]).timestamp() * 1000),
            )
        except (KeyError, ValueError):
            # Without the cause, which may quote a part of the answer.
            raise StorageRefused(
                "What answers as token service is none",
                host=self._host,
                fix="Check stsEndpoint and endpoint in the catalog's storage, or set stsUnavailable.",
            ) from None

    def _refused(self, status: int, code: str) -> StorageRefused | StorageUnavailable:
        shown = code if _CODE.fullmatch(code) else ""
        if shown in _BUSY:
            return StorageUnavailable("The token service asks for patience", host=self._host, code=shown)
        return StorageRefused(
            "The token service refuses credentials for this catalog",
            host=self._host,
            status=status,
            code=shown,
            fix="Check access key, roleArn, externalId and the role's trust, or set stsUnavailable.",
        )


def _parameters(wanted: AssumeRole) -> dict[str, str]:
    found = {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleSessionName": wanted.session_name,
    }
    if wanted.policy:
        found["Policy"] = wanted.policy
    if wanted.duration_s is not None:
        found["DurationSeconds"] = str(wanted.duration_s)
    if wanted.role_arn is not None:
        found["RoleArn"] = wanted.role_arn
    if wanted.external_id is not None:
        found["ExternalId"] = wanted.external_id
    for number, (key, value) in enumerate(wanted.tags.items(), start=1):
        found[f"Tags.member.{number}.Key"] = key
        found[f"Tags.member.{number}.Value"] = value
    return found


def _read_fields(body: bytes) -> dict[str, str]:
    """The text of every element, by its name; nothing of a document that is damaged or declares entities."""
    texts: dict[str, str] = {}
    inside: list[str] = []

    def refuse(*_: object) -> None:
        raise ValueError("a document type")

    def begin(name: str, _: object) -> None:
        inside.append(name)

    def add(text: str) -> None:
        texts[inside[-1]] = texts.get(inside[-1], "") + text

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: inside.pop()
    parser.CharacterDataHandler = add
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError):
        return {}
    return {name: text.strip() for name, text in texts.items()}
