"""What a client is told about a table.

Must not break: an ETag names one version of one table *and* the shape of the answer, so that an answer with
all snapshots is never taken for one with refs only.
"""

from typing import Final, Literal

import msgspec

from cynosure.persistence.spi import ObjId

Snapshots = Literal["all", "refs"]

_encode = msgspec.json.Encoder().encode


NO_CONFIG: Final = b'"config":{}'
"""What a client is told about a table's storage when there is nothing to tell."""


class TableAnswer:
    """One version of a table, encoded."""

    __slots__ = ("_load_body", "_restrictions", "etag", "metadata", "metadata_location")

    def __init__(
        self,
        metadata: bytes,
        metadata_location: str | None,
        etag: bytes | None,
        *,
        restrictions: bytes | None = None,
    ) -> None:
        self.metadata = metadata
        """The table metadata as JSON."""
        self.metadata_location = metadata_location
        """`None` for a staged table, which has no file yet."""
        self.etag = etag
        self._restrictions = restrictions
        """What a reader must apply, as JSON."""
        self._load_body: bytes | None = None

    def load_body(self, access: bytes = NO_CONFIG) -> bytes:
        """The body of LoadTableResult. `access` are its members about the storage."""
        if access is not NO_CONFIG:
            return b"%b%b}" % (self._loaded(), access)
        if self._load_body is None:
            self._load_body = b"%b%b}" % (self._loaded(), access)
        return self._load_body

    def commit_body(self) -> bytes:
        """The body of CommitTableResponse and UnregisterTableResult."""
        return b'%b"metadata":%b}' % (self._opening(), self.metadata)

    def _loaded(self) -> bytes:
        body = b'%b"metadata":%b,' % (self._opening(), self.metadata)
        return (
            body if self._restrictions is None else b'%b"read-restrictions":%b,' % (body, self._restrictions)
        )

    def _opening(self) -> bytes:
        if self.metadata_location is None:
            return b"{"
        return b'{"metadata-location":%b,' % _encode(self.metadata_location)


def make_etag(state_id: ObjId, snapshots: Snapshots) -> bytes:
    """Weak, because the bytes may differ between versions of this server."""
    return b'W/"%x-%b"' % (state_id, snapshots.encode())
