"""Where files are: a file system of this machine, or an object store with credentials of the catalog.

A maintainer must not break: for an object store nothing but what the catalog gave is shown to it, newer
credentials are asked for before the old ones expire, and no key, token or signature is in an error.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import obstore
from msgspec import Struct
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from cynosure.client.appending.signed_files import Sign, SignedFiles, address_of, gone
from cynosure.client.appending.target import StorageCredential
from cynosure.common.errors import BadInput, CynosureError, Forbidden, Unavailable

if TYPE_CHECKING:
    from obstore.store import AzureCredential, GCSCredential, ObjectStore, S3Credential

_S3: Final = ("s3", "s3a", "s3n")
_AZURE: Final = ("abfs", "abfss", "wasb", "wasbs")
_AHEAD: Final = timedelta(minutes=1)
"""Credentials are renewed this long before they end (a tenth of a short life)."""
_CHUNK: Final = 2**20
_SIGNED: Final = "s3.remote-signing-enabled"

Renew = Callable[[], Awaitable[list[StorageCredential]]]
"""Asks the catalog for newer credentials."""


class Access(Struct, frozen=True):
    """What the catalog gave with a table."""

    config: dict[str, str]
    credentials: list[StorageCredential]
    renew: Renew
    sign: Sign
    """Asks the catalog to sign a request, where it says that it does."""

    def __repr__(self) -> str:
        return "Access(***)"


class Files(Protocol):
    """Files of one place."""

    async def has(self, location: str, size_bytes: int) -> bool:
        """Whether there is a file of this size."""

    async def read(self, location: str, into: IO[bytes]) -> int:
        """Put a file's content into another one; how many bytes. `NotFound` when there is no such file."""

    async def write(self, location: str, content: IO[bytes]) -> None:
        """Write a file."""

    async def delete(self, locations: Sequence[str]) -> None:
        """Delete files that are there."""


def open_files(location: str, access: Access) -> Files:
    """The files below a location."""
    scheme = urlsplit(location).scheme
    if scheme in ("", "file"):
        return LocalFiles()
    if scheme in _S3:
        return _open_s3(location, access)
    if scheme == "gs":
        return ObjectFiles(location, _open_gcs(location, access))
    if scheme in _AZURE:
        return ObjectFiles(location, _open_azure(location, access))
    raise BadInput(
        "This client cannot reach such a storage",
        field="location",
        fix="Use an engine that can.",
        location=location,
    )


class LocalFiles:
    """Files of this machine."""

    async def has(self, location: str, size_bytes: int) -> bool:  # noqa: D102
        path = _path_of(location)
        try:
            return path.is_file() and path.stat().st_size == size_bytes
        except OSError:
            # Of another user's, for one. Writing finds out.
            return False

    async def read(self, location: str, into: IO[bytes]) -> int:  # noqa: D102
        try:
            return await asyncio.to_thread(_read, _path_of(location), into)
        except FileNotFoundError:
            raise gone(location) from None
        except PermissionError as error:
            raise Forbidden(
                "This user may not read a file of the table",
                fix="Run the command as a user who may, or on the server's machine.",
                location=location,
            ) from error
        except OSError as error:
            raise Unavailable(
                "A file cannot be read",
                fix="A catalog of local files is read on the server's own machine only. Check that this user "
                "may read there.",
                location=location,
                reason=error.strerror or type(error).__name__,
            ) from error

    async def write(self, location: str, content: IO[bytes]) -> None:  # noqa: D102
        writing = asyncio.ensure_future(asyncio.to_thread(_write, _path_of(location), content))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # Its thread goes on. Whoever deletes the file next must not be followed by it.
            await asyncio.gather(writing, return_exceptions=True)
            raise
        except OSError as error:
            raise Unavailable(
                "A file cannot be written",
                fix="A catalog of local files is written to on the server's own machine only. Check that "
                "this user may write there and that there is space.",
                location=location,
                reason=error.strerror or type(error).__name__,
            ) from error

    async def delete(self, locations: Sequence[str]) -> None:  # noqa: D102
        for location in locations:
            with suppress(OSError):
                _path_of(location).unlink(missing_ok=True)


class ObjectFiles:
    """Objects of one bucket or container."""

    def __init__(self, location: str, store: "ObjectStore") -> None:
        self._root = _root_of(location)
        self._store = store

    async def has(self, location: str, size_bytes: int) -> bool:  # noqa: D102
        try:
            found = await obstore.head_async(self._store, self._key(location))
        except (FileNotFoundError, PermissionDeniedError):
            # S3 tells who may not list that it may not read what is not there. Writing finds out.
            return False
        except BaseError as error:
            raise _translate(error, location) from None
        return found["size"] == size_bytes

    async def read(self, location: str, into: IO[bytes]) -> int:  # noqa: D102
        size_bytes = 0
        try:
            found = await obstore.get_async(self._store, self._key(location))
            async for chunk in found.stream(min_chunk_size=_CHUNK):
                size_bytes += await asyncio.to_thread(into.write, chunk)
        except FileNotFoundError:
            raise gone(location) from None
        except PermissionDeniedError:
            # Of S3, see above.
            raise Forbidden(
                "The storage refuses the credentials that the catalog gave, or a file is not there any more",
                fix="Run it again. If it stays so, check the catalog's storage: cynosure catalogs check.",
                location=location,
            ) from None
        except BaseError as error:
            raise _translate(error, location, "A file cannot be read") from None
        return size_bytes

    async def write(self, location: str, content: IO[bytes]) -> None:  # noqa: D102
        try:
            await obstore.put_async(self._store, self._key(location), content)
        except BaseError as error:
            raise _translate(error, location) from None

    async def delete(self, locations: Sequence[str]) -> None:  # noqa: D102
        for location in locations:
            with suppress(BaseError, FileNotFoundError):
                await obstore.delete_async(self._store, self._key(location))

    def _key(self, location: str) -> str:
        return location.removeprefix(self._root)


def _path_of(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def _read(path: Path, into: IO[bytes]) -> int:
    with path.open("rb") as file:
        shutil.copyfileobj(file, into, _CHUNK)
        return file.tell()


def _write(path: Path, content: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of this write alone: another one of the same file, in this process or another, is not in its way. The
    # file's own name may be as long as names can be, so it is not in it.
    fresh = path.with_name(f".{uuid4().hex}")
    try:
        with fresh.open("wb") as file:
            shutil.copyfileobj(content, file, _CHUNK)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _root_of(location: str) -> str:
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc}/"


def _find(access: list[StorageCredential], location: str) -> dict[str, str]:
    """The properties of the closest place around a location; empty without one."""
    around = [each for each in access if f"{location}/".startswith(f"{each.prefix.rstrip('/')}/")]
    return max(around, key=lambda each: len(each.prefix)).config if around else {}


def _refuse(location: str) -> CynosureError:
    return Forbidden(
        "The catalog gives no credentials for the table's files",
        fix="Ask for the right to the table's data, and check the storage of the catalog: "
        "cynosure catalogs check.",
        location=location,
    )


class _Source:
    """Properties for one location, those at hand until they are about to expire."""

    def __init__(self, location: str, access: Access, needed: str, expires: str) -> None:
        self._location = location
        self._access = access
        self._needed = needed
        self._expires = expires
        self._now = _find(access.credentials, location)
        self._is_fresh = True
        if needed not in self._now:
            raise _refuse(location)

    async def load(self) -> tuple[dict[str, str], datetime | None]:
        # obstore asks once what it has is over; what came with the table is given once.
        if not self._is_fresh:
            newer = _find(await self._access.renew(), self._location)
            if self._needed not in newer:
                raise _refuse(self._location)
            self._now = newer
        self._is_fresh = False
        said_ms = self._now.get(self._expires)
        if said_ms is None:
            return self._now, None
        # obstore goes on until the very end, and a request on its way takes time.
        now, end = datetime.now(UTC), datetime.fromtimestamp(int(said_ms) / 1000, UTC)
        return self._now, end - min(_AHEAD, max(end - now, timedelta()) / 10)


def _open_s3(location: str, access: Access) -> Files:
    config = access.config
    bucket = urlsplit(location).netloc
    region = config.get("client.region") or config.get("s3.region") or "us-east-1"
    endpoint = (config.get("s3.endpoint") or f"https://s3.{region}.amazonaws.com").rstrip("/")
    # Certificates for all buckets cover one label, so a bucket with dots has no host name of its own.
    is_path_style = config.get("s3.path-style-access") == "true" or "." in bucket
    address = address_of(bucket, endpoint, is_path_style=is_path_style)
    if config.get(_SIGNED) == "true" and not _find(access.credentials, location):
        return SignedFiles(region=region, address=address, root=_root_of(location), sign=access.sign)
    source = _Source(location, access, "s3.access-key-id", "s3.session-token-expires-at-ms")

    async def provide() -> "S3Credential":
        given, expires_at = await source.load()
        return {
            "access_key_id": given["s3.access-key-id"],
            "secret_access_key": given["s3.secret-access-key"],
            "token": given.get("s3.session-token"),
            "expires_at": expires_at,
        }

    endpoint = endpoint if is_path_style else address.rstrip("/")
    store = S3Store(
        bucket,
        config={
            # Named even where they are the defaults, because obstore would take them from the environment.
            "region": region,
            "endpoint": endpoint,
            "virtual_hosted_style_request": not is_path_style,
            "skip_signature": False,
            "disable_tagging": True,
        },
        client_options=_client_options(endpoint),
        credential_provider=provide,
    )
    return ObjectFiles(location, store)


def _open_gcs(location: str, access: Access) -> GCSStore:
    source = _Source(location, access, "gcs.oauth2.token", "gcs.oauth2.token-expires-at")

    async def provide() -> "GCSCredential":
        config, expires_at = await source.load()
        return {"token": config["gcs.oauth2.token"], "expires_at": expires_at}

    endpoint = access.config.get("gcs.service.host", "https://storage.googleapis.com").rstrip("/")
    return GCSStore(
        urlsplit(location).netloc,
        config={"base_url": endpoint, "skip_signature": False},
        client_options=_client_options(endpoint),
        credential_provider=provide,
    )


def _open_azure(location: str, access: Access) -> AzureStore:
    container, _, host = urlsplit(location).netloc.partition("@")
    source = _Source(location, access, "adls.sas-token", f"adls.sas-token-expires-at-ms.{host}")

    async def provide() -> "AzureCredential":
        config, expires_at = await source.load()
        return {"sas_token": config["adls.sas-token"], "expires_at": expires_at}

    config = access.config
    account = config.get("adls.account-name") or host.partition(".")[0]
    authority = config.get("adls.blob-storage-authority")
    endpoint = f"https://{host.replace('.dfs.', '.blob.', 1)}"
    if authority:
        endpoint = f"{config.get('adls.blob-storage-scheme', 'https')}://{authority}/{account}"
    return AzureStore(
        container,
        config={
            "account_name": account,
            "endpoint": endpoint,
            "use_emulator": False,
            "use_fabric_endpoint": False,
            "skip_signature": False,
            "disable_tagging": True,
        },
        client_options=_client_options(endpoint),
        credential_provider=provide,
    )


def _client_options(endpoint: str) -> Any:
    return {"allow_http": endpoint.startswith("http://"), "timeout": "10 minutes"}


def _translate(error: BaseError, location: str, message: str = "A file cannot be written") -> CynosureError:
    # obstore's text may quote the request, signature included.
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        return Forbidden(
            "The storage refuses the credentials that the catalog gave",
            fix="Check the storage of the catalog: cynosure catalogs check.",
            location=location,
        )
    return Unavailable(
        message,
        fix="Check that this machine reaches the storage, and try again.",
        location=location,
        reason=type(error).__name__,
    )
