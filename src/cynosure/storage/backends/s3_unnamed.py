"""Objects in S3 that no `Location` can name, by requests of our own: obstore cannot name them either.

A maintainer must not break: keys are taken from the listing as they are, and only those below the prefix.
"""

import hashlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import BadInput
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.s3.addresses import encode_path
from cynosure.storage.access.s3.covered_headers import PAYLOAD_HASH
from cynosure.storage.access.s3.keys import S3Session
from cynosure.storage.access.s3.sigv4 import amz_date, authorize, encode_query
from cynosure.storage.backends.s3_bucket import endpoint_of
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.storage.unnamed import Removed

_PAGE: Final = "200"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


class RawObjects:
    """The objects of one bucket, by their keys."""

    def __init__(
        self, bucket: str, config: S3Storage, settings: StorageSettings, clock: Clock | None = None
    ) -> None:
        endpoint, is_path_style = endpoint_of(bucket, config)
        parts = urlsplit(endpoint)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.netloc
        self._base = f"/{bucket}" if is_path_style else ""
        self._region = config.region
        self._clock = clock or SystemClock()
        self._service = TokenService(settings)

    async def delete_unnamed(self, session: S3Session, place: Location, *, with_markers: bool) -> Removed:
        """See `Unnamed`."""
        prefix = "".join(f"{each}/" for each in place.segments)
        files = size_bytes = 0
        token: str | None = None
        while True:
            pairs = [("list-type", "2"), ("encoding-type", "url"), ("max-keys", _PAGE), ("prefix", prefix)]
            if token is not None:
                pairs.append(("continuation-token", token))
            page = _read_page(await self._send(session, "GET", "", encode_query(pairs)))
            for key, size in page.objects:
                is_marker = key.endswith("/")
                if not key.startswith(prefix) or (is_marker and not with_markers):
                    continue
                if is_marker or not _has_name(place, key):
                    await self._send(session, "DELETE", key, "")
                    files += not is_marker
                    size_bytes += size
            token = page.next_token
            if not token:
                return Removed(files, size_bytes)

    async def _send(self, session: S3Session, method: str, key: str, query: str) -> bytes:
        path = encode_path(f"{self._base}/{key}") if key else self._base or "/"
        headers = {
            "host": self._host,
            "x-amz-date": amz_date(self._clock.now_us()),
            PAYLOAD_HASH: _NOTHING,
        }
        if session.session_token is not None:
            headers["x-amz-security-token"] = session.session_token.reveal()
        headers["authorization"] = authorize(
            session,
            method=method,
            path=path,
            query=query,
            signed=headers,
            payload_sha256=_NOTHING,
            region=self._region,
            service="s3",
        )
        url = f"{self._origin}{path}{'?' if query else ''}{query}"
        answer = await self._service.send(method, url, headers=headers, body=b"")
        if not answer.is_success and answer.status != 404:
            raise StorageRefused(
                "The storage refused this catalog's credentials or request",
                status=answer.status,
                fix="Check keys and their rights in the catalog's storage configuration.",
            )
        return answer.body


def _has_name(place: Location, key: str) -> bool:
    try:
        place.child(*key.split("/")[len(place.segments) :])
    except BadInput:
        return False
    return True


class _Page:
    """One page of a listing."""

    def __init__(self) -> None:
        self.next_token: str | None = None
        self._path: list[str] = []
        self._text = ""
        self._found: list[tuple[str, int]] = []
        self._key = ""
        self._is_encoded = False

    @property
    def objects(self) -> Sequence[tuple[str, int]]:
        """Keys and sizes."""
        return [(unquote(key) if self._is_encoded else key, size) for key, size in self._found]

    def start(self, name: str, _: object) -> None:
        self._path.append(name)
        self._text = ""

    def add_text(self, text: str) -> None:
        self._text += text

    def end(self, name: str) -> None:
        self._path.pop()
        above = self._path[-1] if self._path else ""
        match above, name:
            case "Contents", "Key":
                self._key = self._text
            case "Contents", "Size":
                self._found.append((self._key, int(self._text)))
            case "ListBucketResult", "EncodingType":
                self._is_encoded = self._text.strip() == "url"
            case "ListBucketResult", "NextContinuationToken":
                self.next_token = self._text


def _read_page(body: bytes) -> _Page:
    page = _Page()
    parser = expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartElementHandler = page.start
    parser.EndElementHandler = page.end
    parser.CharacterDataHandler = page.add_text
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError) as error:
        raise StorageUnavailable(
            "The storage does not answer or fails", reason="a listing that is not understood"
        ) from error
    return page
