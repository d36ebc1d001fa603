"""Files of a task, opened: with the task's credentials, below its places, and in no other way.

A maintainer must not break: a path outside of the places is refused before anything is touched, local files
are reached below `file_roots` only and through no link, nothing of the environment opens anything, and no
error names a path.
"""

import errno
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import obstore
from msgspec import structs
from obstore.exceptions import BaseError

from cynosure.common.errors import BadInput
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Credentials, ScanTask
from cynosure.storage.access.s3.keys import S3Session
from cynosure.storage.backends.local_tree import LocalTree
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.location import Location, is_allowed
from cynosure.storage.object_files import sort_failure
from cynosure.storage.open_vended import account_of, gcs_config_of, require, s3_config_of
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from obstore.store import AzureCredential, GCSCredential, ObjectStore

LOCAL_BUFFER: Final = 2**20
REMOTE_BUFFER: Final = 4 * 2**20
"""What is read at once of a column: a request to a store costs more than a call of the system."""
_REFUSALS: Final = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR})


class Source:
    """A file, open, and how it is best read."""

    def __init__(self, file: io.RawIOBase, buffer_bytes: int, remote: "RemoteFile | None") -> None:
        self.file = file
        self.buffer_bytes = buffer_bytes
        self.remote = remote
        """None: it is a local file."""

    @property
    def read_bytes(self) -> int:
        """From a store so far; of local files it is not counted."""
        return self.remote.read_bytes if self.remote else 0

    def close(self) -> None:
        """Give it back."""
        self.file.close()


class TaskFiles:
    """Opens files of one task with the newest credentials it was given."""

    def __init__(self, task: ScanTask) -> None:
        self._places = tuple(_parse(each) for each in task.places)
        self._roots = tuple(_parse(each) for each in task.file_roots)
        self._tree = LocalTree(self._roots, unlinked=self._places)
        self._settings, self._ca_pem = _read_settings(task.storage)
        self.credentials = task.credentials
        self._buckets: dict[str, ObjectStore] = {}

    @property
    def has_own_authorities(self) -> bool:
        """Whether certificates of the task's own are needed to reach its store."""
        return bool(self._ca_pem)

    @property
    def operation_timeout_s(self) -> float:
        """How long one operation on a store may take, with all its attempts."""
        return self._settings.operation_timeout.total_seconds()

    @property
    def places(self) -> tuple[Location, ...]:
        """Where the table's files are."""
        return self._places

    def renew(self, credentials: Credentials) -> None:
        """Use newer credentials from now on; older ones are left alone."""
        if credentials.number > self.credentials.number:
            self.credentials = credentials
            self._buckets.clear()

    def locate(self, path: str) -> Location:
        """A path that may be read. `NotReadable` for every other."""
        location = _parse(path)
        if location in self._places or not is_allowed(location, self._places):
            raise NotReadable(
                "A file of the table is outside of the table's places",
                fix="Rewrite the table's files below its location.",
            )
        if location.scheme == "file" and not is_allowed(location, self._roots):
            raise StorageRefused(
                "Local files are outside of what may be read here",
                fix="Name the directory in query.gateway.file_locations.",
            )
        return location

    def open(self, path: str, size_bytes: int) -> Source:
        """A file for reading at any place in it."""
        location = self.locate(path)
        if location.scheme == "file":
            return Source(self._open_whole(location, size_bytes), LOCAL_BUFFER, None)
        remote = RemoteFile(self._open_bucket(location), "/".join(location.segments), size_bytes)
        return Source(remote, REMOTE_BUFFER, remote)

    def read(self, path: str, *, limit_bytes: int) -> bytes:
        """A whole file. `NotReadable` for one that is larger."""
        location = self.locate(path)
        if location.scheme == "file":
            with self.open_local(location) as file, _translating():
                data = file.read(limit_bytes + 1)
        else:
            bucket, key = self._open_bucket(location), "/".join(location.segments)
            with _translating():
                is_too_large = obstore.head(bucket, key)["size"] > limit_bytes
                data = b"" if is_too_large else bytes(obstore.get(bucket, key).bytes())
        if len(data) > limit_bytes or (not data and location.scheme != "file"):
            raise NotReadable("A file of the table's metadata is larger than is read, or empty")
        return data

    def open_local(self, location: Location) -> io.FileIO:
        """A local file."""
        with _translating():
            return io.FileIO(self._tree.open_file(location), "rb")

    def _open_whole(self, location: Location, size_bytes: int) -> io.FileIO:
        """A local file of this size: parts of files are chosen by it, so another one would lose rows."""
        file = self.open_local(location)
        with _translating():
            is_same = os.fstat(file.fileno()).st_size == size_bytes
        if not is_same:
            file.close()
            raise NotReadable("A file of the table has another size than the table says")
        return file

    def _open_bucket(self, location: Location) -> "ObjectStore":
        bucket = self._buckets.get(location.authority)
        if bucket is None:
            with self._authorities() as settings:
                bucket = self._buckets[location.authority] = self._make_bucket(location, settings)
        return bucket

    @contextmanager
    def _authorities(self) -> Iterator[StorageSettings]:
        """Settings with a file of extra certificates, which clients read when they are made."""
        if not self._ca_pem:
            yield self._settings
            return
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(self._ca_pem.encode())
            file.flush()
            yield structs.replace(self._settings, ca_file=Path(file.name))

    def _make_bucket(self, location: Location, settings: StorageSettings) -> "ObjectStore":
        properties = self.credentials.properties
        expires_at = _end_of(self.credentials)
        if location.scheme == "s3":
            from cynosure.storage.backends import s3_bucket  # noqa: PLC0415 - one of three

            require(properties, "s3.access-key-id", "s3.secret-access-key")
            session = S3Session.from_properties(properties)
            config = s3_config_of(properties, self._places)
            return s3_bucket.open_bucket(location.authority, config, lambda: session, settings)
        if location.scheme == "az":
            from cynosure.storage.backends.azure import open_container_with  # noqa: PLC0415

            [signature] = require(properties, "adls.sas-token")
            shared = cast("AzureCredential", {"sas_token": signature, "expires_at": expires_at})
            container = location.authority.partition("@")[0]
            return open_container_with(
                container, account_of(properties, self._places), lambda: shared, settings
            )
        from cynosure.storage.backends.gcs import open_bucket_with  # noqa: PLC0415

        [token] = require(properties, "gcs.oauth2.token")
        bearer = cast("GCSCredential", {"token": token, "expires_at": expires_at})
        return open_bucket_with(
            location.authority, gcs_config_of(properties, self._places), lambda: bearer, settings
        )


class RemoteFile(io.RawIOBase):
    """An object of a store, read in ranges."""

    def __init__(self, store: "ObjectStore", key: str, size_bytes: int) -> None:
        self._store = store
        self._key = key
        self._size = size_bytes
        self._at = 0
        self.read_bytes = 0

    def readable(self) -> bool:  # noqa: D102
        return True

    def seekable(self) -> bool:  # noqa: D102
        return True

    def tell(self) -> int:  # noqa: D102
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # noqa: D102
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:  # noqa: D102
        left = max(self._size - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        with _translating():
            found = bytes(obstore.get_range(self._store, self._key, start=self._at, length=wanted))
        if len(found) != wanted:
            raise NotReadable("A file of the table is shorter than the table says")
        self._at += wanted
        self.read_bytes += wanted
        return found

    def readall(self) -> bytes:  # noqa: D102
        return self.read()


@contextmanager
def _translating() -> Iterator[None]:
    """What a store or the system says, without a path."""
    try:
        yield
    except (FileNotFoundError, FileMissing):
        _say_missing()
    except StorageRefused as error:
        raise StorageRefused(error.message, fix=error.fix) from None
    except BaseError as error:
        failure = sort_failure(error)
        if failure.status == 416:
            raise NotReadable("A file of the table is shorter than the table says") from None
        if failure.is_refusal:
            raise StorageRefused(
                "The storage refused the credentials of this scan",
                status=failure.status,
                code=failure.code,
                fix="Check the rights of the role that the catalog gives credentials of.",
            ) from None
        raise StorageUnavailable("The storage does not answer or fails", reason=failure.code) from None
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "unknown")
        if error.errno == errno.ENOTDIR:
            _say_missing()
        if error.errno in _REFUSALS:
            raise StorageRefused("The file system refuses access", reason=reason) from None
        raise StorageUnavailable("The file system failed", reason=reason) from None


def _say_missing() -> NoReturn:
    raise NotReadable(
        "A file of the table is gone",
        fix="Run the statement again; if it stays so, restore the file or repair the table.",
    ) from None


def _parse(text: str) -> Location:
    try:
        return Location.parse(text)
    except BadInput:
        raise NotReadable("A file of the table is at a place that cannot be named") from None


def _end_of(credentials: Credentials) -> datetime | None:
    return datetime.fromtimestamp(credentials.expires_ms / 1000, UTC) if credentials.expires_ms else None


def _read_settings(given: Mapping[str, Any]) -> tuple[StorageSettings, str]:
    defaults = StorageSettings()
    seconds = {
        name: timedelta(seconds=float(given.get(f"{name}_s", getattr(defaults, name).total_seconds())))
        for name in ("connect_timeout", "stall_timeout", "operation_timeout")
    }
    settings = structs.replace(defaults, retries=int(given.get("retries", defaults.retries)), **seconds)
    return settings, str(given.get("ca_pem", ""))
