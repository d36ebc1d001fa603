"""Files in an object store, through obstore: what is the same for all of them.

A maintainer must not break: what obstore raises is sorted by the status of the answer. A status below 500 is
a refusal; no status, or one from 500 on, means that the storage is not available. The text of a storage's
answer is not shown: only its status and its short code.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import obstore
from msgspec import Struct, structs
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from cynosure.common.errors import BadInput, CynosureError
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

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_STATUS: Final = re.compile(r"non-2xx status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
# Of one file among many that one request deletes; the request as a whole succeeds then.
_DELETE_CODE: Final = re.compile(r'DeleteFailed \{\n\s+path: .*\n\s+code: "(\w{1,64})",\n')
# In the answer to a request for many at once Azure gives no code, only words.
_NO_BUCKET: Final = re.compile(r"<Code>(?:NoSuchBucket|ContainerNotFound)</Code>|container does not exist")
_BUSY: Final = frozenset({"SlowDown", "RequestTimeout", "ServerBusy", "OperationTimedOut", "TooManyRequests"})
_FAILED: Final = frozenset({"InternalError", "ServiceUnavailable"})
_LIST_TRIES: Final = 4
"""How often one page of a listing is asked for in a row, each time with all the client's own attempts."""
_PARTS: Final = 16
"""Into how many parts a deletion is divided of which something was gone already."""


class Store(Struct, frozen=True, eq=False):
    """What tells one kind of object store from another."""

    open_bucket: Callable[[Location, StorageSettings], "ObjectStore"]
    """A client for the bucket or container that a location is in. Does not connect."""
    authenticate: Callable[[], Awaitable[object]]
    """Makes sure that there are credentials, for this operation to fail with a reason where there are none:
    what a callback raises to obstore comes back as one more failed request."""
    bucket_word: Literal["bucket", "container"] = "bucket"
    deleted_at_once: int = 100
    """Most files that one operation deletes, within its time."""
    deletes_what_is_gone: bool = False
    """Whether deleting many succeeds where some of them are not there."""
    repeats_changes: bool = True
    """Whether the client repeats writes and deletions by itself. Not for who may change files only as long as
    a lease lasts, and has to look at it before every request."""


class ObjectFiles:
    """Objects below the allowed locations, in any number of buckets."""

    def __init__(self, store: Store, allowed: Sequence[Location], settings: StorageSettings) -> None:
        self._store = store
        self._allowed = tuple(allowed)
        self._timeout_s = settings.operation_timeout.total_seconds()
        self._settings = settings
        self._once = settings if store.repeats_changes else structs.replace(settings, retries=0)
        self._buckets: dict[tuple[str, int], ObjectStore] = {}

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:  # noqa: D102
        check_file(location, self._allowed)
        async with self._asking(location) as bucket:
            answer = await obstore.get_async(bucket, _key_of(location))
            if answer.meta["size"] > limit_bytes:
                raise too_large(location, limit_bytes)
            return bytes(await answer.bytes_async())

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:  # noqa: D102
        check_file(location, self._allowed)
        mode: Literal["overwrite", "create"] = "overwrite" if overwrite else "create"
        try:
            async with self._asking(location, self._once) as bucket:
                # One request whatever the size: multipart uploads are not conditional everywhere.
                await obstore.put_async(bucket, _key_of(location), data, mode=mode, use_multipart=False)
        except FileMissing as error:
            raise self._no_bucket(location) from error
        except _Taken:
            # Perhaps by ourselves: obstore repeats a request after a server error, and the first one may
            # have been applied.
            if not await self._holds(location, data):
                raise taken(location) from None

    async def delete(self, location: Location) -> None:  # noqa: D102
        await self.delete_many((location,))

    async def delete_many(self, locations: Iterable[Location]) -> None:  # noqa: D102
        by_bucket: dict[str, list[Location]] = {}
        for location in locations:
            check_file(location, self._allowed)
            by_bucket.setdefault(location.authority, []).append(location)
        for found in by_bucket.values():
            for batch in _batches(found, self._store.deleted_at_once):
                await self._delete_batch(batch)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:  # noqa: D102
        check_allowed(prefix, self._allowed)
        async with self._asking(prefix) as bucket:
            pages = obstore.list(bucket, _key_of(prefix) or None)
        last: str | None = None
        failures = 0
        while True:
            try:
                async with self._asking(prefix) as bucket:
                    page = await anext(pages, None)
            except StorageUnavailable:
                # A long listing is not begun again for one page that did not come: keys are in order.
                failures += 1
                if last is None or failures == _LIST_TRIES:
                    raise
                pages = obstore.list(bucket, _key_of(prefix) or None, offset=last)
                continue
            if page is None:
                return
            failures = 0
            last = page[-1]["path"] if page else last
            for found in page:
                try:
                    location = prefix.child(*found["path"].split("/")[len(prefix.segments) :])
                except BadInput:
                    continue
                modified_us = round(found["last_modified"].timestamp() * 1_000_000)
                yield FileInfo(location, found["size"], modified_us)

    async def exists(self, location: Location) -> bool:  # noqa: D102
        check_file(location, self._allowed)
        try:
            async with self._asking(location) as bucket:
                await obstore.head_async(bucket, _key_of(location))
        except FileMissing:
            return False
        return True

    async def _delete_batch(self, batch: Sequence[Location]) -> None:
        try:
            async with self._asking(batch[0], self._once) as bucket:
                await obstore.delete_async(bucket, [_key_of(one) for one in batch])
        except FileMissing as error:
            if self._store.deletes_what_is_gone:
                raise self._no_bucket(batch[0]) from error
            if len(batch) > 1:
                # One was gone already; what became of those after it, obstore does not say.
                for part in _batches(batch, -(-len(batch) // _PARTS)):
                    await self._delete_batch(part)

    async def _holds(self, location: Location, data: bytes) -> bool:
        try:
            return await self.read(location, limit_bytes=len(data)) == data
        except StorageUnavailable:
            raise
        except CynosureError:
            return False

    @asynccontextmanager
    async def _asking(
        self, location: Location, settings: StorageSettings | None = None
    ) -> AsyncIterator["ObjectStore"]:
        """The bucket of a location. Bound the time and translate what obstore raises."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._store.authenticate()
                settings = settings or self._settings
                key = location.authority, settings.retries
                if (bucket := self._buckets.get(key)) is None:
                    bucket = self._buckets[key] = self._store.open_bucket(location, settings)
                yield bucket
        except TimeoutError as error:
            raise _unavailable(location, "timeout") from error
        except FileNotFoundError as error:
            has_bucket = _NO_BUCKET.search(str(error)) is None
            raise (missing(location) if has_bucket else self._no_bucket(location)) from error
        except (AlreadyExistsError, PreconditionError) as error:
            raise _Taken from error
        except BaseError as error:
            if _NO_BUCKET.search(str(error)):
                raise self._no_bucket(location) from error
            raise _translate(error, location) from error

    def _no_bucket(self, location: Location) -> StorageRefused:
        return StorageRefused(
            f"There is no such {self._store.bucket_word}",
            location=location.text,
            bucket=location.authority,
            fix="Create it, or correct the catalog's locations and addresses.",
        )


class _Taken(Exception):
    """The object exists, or another one is being written under its name."""


def make_client_options(settings: StorageSettings, endpoint: str) -> "ClientConfig":
    """Of obstore's HTTP client. Always given, because they replace those of the environment as a whole."""
    client: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": settings.connect_timeout,
        "read_timeout": settings.stall_timeout,
        "timeout": settings.operation_timeout,
        "user_agent": "cynosure",
    }
    if settings.ca_file is not None:
        client["root_certificate"] = settings.ca_file.read_bytes()
    return client


def make_retry_config(settings: StorageSettings) -> "RetryConfig":
    """How often obstore tries, and for how long."""
    return {"max_retries": settings.retries, "retry_timeout": settings.operation_timeout}


class Failure(Struct, frozen=True):
    """What a storage said, without its words."""

    is_refusal: bool
    """Otherwise it is not available."""
    status: int | None
    code: str


def sort_failure(error: BaseError) -> Failure:
    """A refusal or an outage, by the status of the answer."""
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else None
    code = _code_of(error)
    is_refused = status is not None and status < 500 and status != 429
    if status is None and (found := _DELETE_CODE.search(str(error))):
        code = found[1]
        is_refused = code not in _FAILED
    return Failure(is_refused and code not in _BUSY, status, code)


def _translate(error: BaseError, location: Location) -> CynosureError:
    failure = sort_failure(error)
    if not failure.is_refusal:
        return _unavailable(
            location, failure.code or (str(failure.status) if failure.status else "no answer")
        )
    return StorageRefused(
        "The storage refused this catalog's credentials or request",
        location=location.text,
        status=failure.status,
        code=failure.code,
        fix="Check addresses, keys and their rights in the catalog's storage configuration.",
    )


def _unavailable(location: Location, reason: str) -> StorageUnavailable:
    return StorageUnavailable("The storage does not answer or fails", location=location.text, reason=reason)


def _code_of(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _key_of(location: Location) -> str:
    return "/".join(location.segments)


def _batches(found: Sequence[Location], size: int) -> Iterable[list[Location]]:
    rest = iter(found)
    while batch := list(islice(rest, size)):
        yield batch
