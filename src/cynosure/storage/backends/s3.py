"""Files in S3 and in stores that speak its protocol, through obstore.

A maintainer must not break: what obstore raises is sorted by the status of the answer. A status below 500 is
a refusal; no status, or one from 500 on, means that the storage is not available. The text of a storage's
answer is not shown: only its status and its short code.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from cynosure.common.errors import BadInput, CynosureError
from cynosure.storage.backends.s3_bucket import open_bucket
from cynosure.storage.config import S3Keys, S3Storage, allowed_locations
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.fileio import (
    READ_LIMIT_BYTES,
    FileInfo,
    check_allowed,
    check_file,
    missing,
    taken,
    too_large,
)
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings

_STATUS: Final = re.compile(r"non-2xx status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_DELETED_AT_ONCE: Final = 1_000
"""Most keys that one request of the protocol deletes."""


class S3FileIO:
    """Objects below the allowed locations, in any number of buckets under one endpoint and one key."""

    def __init__(self, config: S3Storage, keys: S3Keys | None, settings: StorageSettings) -> None:
        self._config = config
        self._keys = keys
        self._settings = settings
        self._allowed = allowed_locations(config)
        self._timeout_s = settings.operation_timeout.total_seconds()
        self._stores: dict[str, S3Store] = {}

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        check_file(location, self._allowed)
        async with self._asking(location):
            answer = await obstore.get_async(self._store_of(location), _key_of(location))
            if answer.meta["size"] > limit_bytes:
                raise too_large(location, limit_bytes)
            return bytes(await answer.bytes_async())

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        check_file(location, self._allowed)
        mode: Literal["overwrite", "create"] = "overwrite" if overwrite else "create"
        try:
            async with self._asking(location):
                # One request whatever the size: multipart uploads are not conditional everywhere.
                await obstore.put_async(
                    self._store_of(location), _key_of(location), data, mode=mode, use_multipart=False
                )
        except FileMissing as error:
            raise _no_bucket(location) from error
        except _Taken:
            # Perhaps by ourselves: obstore repeats a request after a server error, and the first one may
            # have been applied.
            if not await self._holds(location, data):
                raise taken(location) from None

    async def delete(self, location: Location) -> None:
        await self.delete_many((location,))

    async def delete_many(self, locations: Iterable[Location]) -> None:
        by_bucket: dict[str, list[Location]] = {}
        for location in locations:
            check_file(location, self._allowed)
            by_bucket.setdefault(location.authority, []).append(location)
        for found in by_bucket.values():
            for batch in _batches(found, _DELETED_AT_ONCE):
                try:
                    async with self._asking(batch[0]):
                        await obstore.delete_async(self._store_of(batch[0]), [_key_of(one) for one in batch])
                except FileMissing as error:
                    raise _no_bucket(batch[0]) from error

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        check_allowed(prefix, self._allowed)
        pages = obstore.list(self._store_of(prefix), _key_of(prefix) or None)
        while True:
            async with self._asking(prefix):
                page = await anext(pages, None)
            if page is None:
                return
            for found in page:
                try:
                    location = prefix.child(*found["path"].split("/")[len(prefix.segments) :])
                except BadInput:
                    continue
                modified_us = round(found["last_modified"].timestamp() * 1_000_000)
                yield FileInfo(location, found["size"], modified_us)

    async def exists(self, location: Location) -> bool:
        check_file(location, self._allowed)
        try:
            async with self._asking(location):
                await obstore.head_async(self._store_of(location), _key_of(location))
        except FileMissing:
            return False
        return True

    async def _holds(self, location: Location, data: bytes) -> bool:
        try:
            return await self.read(location, limit_bytes=len(data)) == data
        except StorageUnavailable:
            raise
        except CynosureError:
            return False

    def _store_of(self, location: Location) -> S3Store:
        if (store := self._stores.get(location.authority)) is None:
            if self._keys is None:
                raise StorageRefused(
                    "The catalog's storage has no access key",
                    location=location.text,
                    fix="Have an access key set with the catalog's storage; none is taken from elsewhere.",
                )
            store = open_bucket(location.authority, self._config, self._keys, self._settings)
            self._stores[location.authority] = store
        return store

    @asynccontextmanager
    async def _asking(self, location: Location) -> AsyncIterator[None]:
        """Bound the time and translate what obstore raises."""
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            raise _unavailable(location, "timeout") from error
        except FileNotFoundError as error:
            raise (_no_bucket if _code_of(error) == "NoSuchBucket" else missing)(location) from error
        except (AlreadyExistsError, PreconditionError) as error:
            raise _Taken from error
        except BaseError as error:
            raise _translate(error, location) from error


class _Taken(Exception):
    """The object exists, or another one is being written under its name."""


def _translate(error: BaseError, location: Location) -> CynosureError:
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else None
    code = _code_of(error)
    if code == "NoSuchBucket":
        return _no_bucket(location)
    if status is None or status >= 500 or code in ("SlowDown", "RequestTimeout"):
        return _unavailable(location, code or (str(status) if status else "no answer"))
    return StorageRefused(
        "The storage refused this catalog's credentials or request",
        location=location.text,
        status=status,
        code=code,
        fix="Check region, endpoint, access key and its rights in the catalog's storage configuration.",
    )


def _unavailable(location: Location, reason: str) -> StorageUnavailable:
    return StorageUnavailable("The storage does not answer or fails", location=location.text, reason=reason)


def _no_bucket(location: Location) -> StorageRefused:
    return StorageRefused(
        "There is no such bucket",
        location=location.text,
        bucket=location.authority,
        fix="Create it, or correct the catalog's locations, region and endpoint.",
    )


def _code_of(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _key_of(location: Location) -> str:
    return "/".join(location.segments)


def _batches(found: Sequence[Location], size: int) -> Iterable[list[Location]]:
    rest = iter(found)
    while batch := list(islice(rest, size)):
        yield batch
