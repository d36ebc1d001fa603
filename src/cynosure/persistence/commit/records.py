"""What a commit object holds.

A commit is the whole state of one reference (its indexes and recent idempotency keys) and the list of
requests it contains; that list is the change feed and the source of the audit.

Must not break: `sequence` grows by exactly one along the chain and `parents` lists the nearest
ancestors newest first, so a commit can be looked for in the chain without reading all of it.
"""

from typing import Literal

import msgspec
from msgspec import Raw

from cynosure.persistence.commit.key_log import KeyLog
from cynosure.persistence.index import Index
from cynosure.persistence.objects import ObjectType, Stored, StructCodec
from cynosure.persistence.spi import ObjId

PARENTS_KEPT = 16

NO_COMMIT = ObjId(0)
"""Head of a reference nobody has committed to yet: the empty state, which is no object."""

Holds = Literal["objects", "bytes"]
"""Whether an index's values are packed `ObjRef`s, which garbage collection follows, or plain bytes."""


class StoredIndex(Stored, frozen=True):
    """An index inside a commit."""

    holds: Holds
    data: bytes
    """Embedded form of the index: root node and buffer."""


class Change(Stored, frozen=True):
    """One typed change, for the change feed."""

    kind: str
    index: str
    key: bytes
    before: bytes | None = None
    after: bytes | None = None
    detail: Raw = Raw(b"\xc0")
    """Msgpack; what it means depends on `kind`."""


class RequestRecord(Stored, frozen=True, omit_defaults=True):
    """One request as it was committed."""

    principal: str
    operation: str
    request_id: str = ""
    key_hash: str = ""
    """Hash of the Idempotency-Key; empty without one."""
    changes: tuple[Change, ...] = ()
    actor: str = ""
    """The service that acted for the principal; empty when it acted itself."""
    roles: tuple[str, ...] = ()
    """Roles of the principal that were active."""
    receipt: bytes = b""
    """Of a request with a key: what its answer can be given from again (`auth/receipts.py`)."""


class CommitRecord(Stored, frozen=True):
    """The stored form of a commit."""

    sequence: int
    time_us: int
    """Never earlier than the parent's, whatever the clocks say."""
    parents: tuple[ObjId, ...]
    indexes: dict[str, StoredIndex]
    requests: tuple[RequestRecord, ...] = ()
    key_log: bytes = b""
    """Recent idempotency keys (`key_log.py`)."""


class Commit:
    """A commit in memory: the record, with indexes decoded when first asked for."""

    __slots__ = ("_indexes", "_key_log", "record")

    def __init__(
        self,
        record: CommitRecord,
        indexes: dict[str, Index] | None = None,
        key_log: KeyLog | None = None,
    ) -> None:
        self.record = record
        self._indexes: dict[str, Index] = indexes or {}
        self._key_log = key_log

    def index(self, name: str) -> Index:
        """The index of this name; an index that was never written is empty."""
        index = self._indexes.get(name)
        if index is None:
            stored = self.record.indexes.get(name)
            index = Index.decode(stored.data) if stored is not None else Index.EMPTY
            self._indexes[name] = index
        return index

    def decoded(self) -> dict[str, Index]:
        """The indexes that were asked for so far: what a child commit takes over."""
        return dict(self._indexes)

    @property
    def key_log(self) -> KeyLog:
        """Where recent idempotency keys are."""
        if self._key_log is None:
            self._key_log = KeyLog.unpack(self.record.key_log)
        return self._key_log


class _CommitCodec:
    def __init__(self, version: int) -> None:
        self._records = StructCodec(CommitRecord, version)

    def encode(self, value: Commit) -> bytes:
        return self._records.encode(value.record)

    def decode(self, payload: bytes, version: int) -> Commit:
        return Commit(self._records.decode(payload, version))

    def weigh(self, value: Commit, payload_bytes: int) -> int:
        # The record plus its decoded indexes: their roots and buffers decode to about three times
        # their bytes.
        return 2_000 + 4 * payload_bytes


COMMIT_VERSION = 3
"""2: requests name actor and roles. 3: requests have receipts, and their keys are in a log."""

COMMIT: ObjectType[Commit] = ObjectType(
    name="commit",
    codec=_CommitCodec(COMMIT_VERSION),
    version=COMMIT_VERSION,
    is_compressed=False,  # Index bytes are compressed already.
    # No refs: its ancestors may be collected before it, and its indexes are walked by the collector.
)


def empty_commit() -> Commit:
    """What `NO_COMMIT` stands for."""
    return Commit(CommitRecord(sequence=0, time_us=0, parents=(), indexes={}))


def raw_detail(value: object) -> Raw:
    """Encode the detail of a `Change`."""
    return Raw(msgspec.msgpack.encode(value))
