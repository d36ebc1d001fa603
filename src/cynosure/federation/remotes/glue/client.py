"""Requests to Glue: JSON, signed, with the keys of the connection and no others.

A maintainer must not break: a change that may have arrived and was not answered, or was answered with a
failure of the service, is `OutcomeUnknown`. And an answer is decoded into what it may be and nothing else,
within a limit: what JSON can say in three bytes takes eighty here.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes.aws_keys import close_aws_keys
from cynosure.federation.remotes.failures import NOT_ALLOWED, NOT_LET_IN
from cynosure.federation.remotes.transport import ENTRY_BYTES, Answered, Lost, Transport, Unusable
from cynosure.federation.remotes.urls import check_url
from cynosure.federation.settings import FederationSettings
from cynosure.storage.access.s3.keys import S3KeySource
from cynosure.storage.access.s3.sigv4 import amz_date, authorize

T = TypeVar("T")

_SERVICE: Final = "glue"
_BUSY: Final = frozenset(
    {"ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException"}
)
_OPEN: Final = frozenset(
    {"InternalServiceException", "OperationTimeoutException", "FederationSourceException"}
)
"""Failures that say nothing about whether a change was made."""

_NOT_LET_IN: Final = frozenset(
    {
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


class GlueRefused(Exception):
    """Glue answered with one of its errors, known by its name alone."""

    def __init__(self, kind: str, status: int) -> None:
        super().__init__(kind)
        self.kind = kind
        self.status = status


class _Refusal(Struct):
    kind: str = field(default="", name="__type")


class GlueClient:
    """Glue of one region."""

    def __init__(
        self,
        uri: str,
        region: str,
        keys: S3KeySource,
        catalog_id: str | None,
        settings: FederationSettings,
        clock: Clock,
        name: str,
    ) -> None:
        self._url = check_url(uri, settings, name).copy_with(path="/")
        self._region = region
        self._keys = keys
        self._catalog_id = catalog_id
        self._clock = clock
        self._name = name
        self._transport = Transport(settings)

    async def read(self, action: str, arguments: Mapping[str, Any], answer_type: type[T], *, limit: int) -> T:
        """The answer to what changes nothing, in `limit` bytes. `GlueRefused`, `RemoteUnavailable`."""
        answer = await self._send(action, arguments, limit)
        if isinstance(answer, Lost):
            raise RemoteUnavailable(self._name, reason=answer.reason)
        if isinstance(answer, Unusable):
            raise RemoteMisbehaved(self._name, problem=answer.problem)
        if answer.status >= 500:
            raise RemoteUnavailable(self._name, reason=f"status {answer.status}", status=answer.status)
        if answer.status < 300:
            return self._decode(answer, answer_type)
        raise self._refusal(answer)

    async def change(self, action: str, arguments: Mapping[str, Any]) -> None:
        """Change something. `GlueRefused`, `RemoteUnavailable`, `OutcomeUnknown`."""
        answer = await self._send(action, arguments, ENTRY_BYTES)
        if isinstance(answer, Lost):
            if answer.has_left:
                raise self._unknown(answer.reason)
            raise RemoteUnavailable(self._name, reason=answer.reason)
        if isinstance(answer, Answered) and answer.status < 300:
            return
        if isinstance(answer, Unusable) or answer.status >= 500:
            raise self._unknown(f"status {answer.status}", status=answer.status)
        refusal = self._refusal(answer)
        if isinstance(refusal, GlueRefused) and refusal.kind in _OPEN:
            raise self._unknown(refusal.kind, status=answer.status)
        raise refusal

    async def close(self) -> None:
        """End the connections."""
        await close_aws_keys(self._keys)
        await self._transport.close()

    async def _send(
        self, action: str, arguments: Mapping[str, Any], limit: int
    ) -> Answered | Lost | Unusable:
        wanted = dict(arguments)
        if self._catalog_id is not None:
            wanted["CatalogId"] = self._catalog_id
        body = msgspec.json.encode(wanted)
        session = await self._keys.load()
        headers = {
            "content-type": "application/x-amz-json-1.1",
            "host": self._url.netloc.decode("ascii"),
            "x-amz-date": amz_date(self._clock.now_us()),
            "x-amz-target": f"AWSGlue.{action}",
        }
        if session.session_token is not None:
            headers["x-amz-security-token"] = session.session_token.reveal()
        headers["authorization"] = authorize(
            session,
            method="POST",
            path="/",
            query="",
            signed=headers,
            payload_sha256=hashlib.sha256(body).hexdigest(),
            region=self._region,
            service=_SERVICE,
        )
        return await self._transport.send("POST", self._url, headers=headers, body=body, limit=limit)

    def _decode(self, answer: Answered, answer_type: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.body or b"{}", type=answer_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RemoteMisbehaved(self._name, problem="not what Glue says") from error

    def _refusal(self, answer: Answered) -> Exception:
        kind = self._decode(answer, _Refusal).kind.rpartition("#")[2]
        if kind in _BUSY or answer.status == 429:
            return RemoteUnavailable(self._name, reason="it asks for patience", status=answer.status)
        return GlueRefused(kind, answer.status)

    def _unknown(self, reason: str, *, status: int | None = None) -> OutcomeUnknown:
        error = OutcomeUnknown(
            "The remote catalog did not say whether it made the change", catalog=self._name, reason=reason
        )
        if status is not None:
            error.details["status"] = status
        return error


def translate(refused: GlueRefused, name: str, known: Mapping[str, CynosureError]) -> CynosureError:
    """An error of Glue's in our words: one of those that are expected, or that it refuses us this."""
    if not refused.kind and refused.status not in (401, 403):
        # Glue names its errors.
        return RemoteMisbehaved(name, problem=f"status {refused.status}")
    reason = NOT_LET_IN if refused.kind in _NOT_LET_IN else NOT_ALLOWED
    return known.get(refused.kind) or RemoteRefused(name, status=refused.status, reason=reason)
