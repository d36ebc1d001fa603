"""Which idempotency keys were committed when: a log of short hashes, in a tail and sorted runs.

    entry    hash of the key, 8 bytes | id of the commit that has it, 8 bytes
    tail     the latest entries as they came, embedded in the commit
    run      older entries in the order of their hashes: an immutable object of its own (`KEY_RUN`)

Keys are random, so a tree of them would rewrite another leaf for every key. Here a key is appended to the
tail; a full tail becomes a run; and `FAN_IN` runs of about one size become one run, so that there are few of
them to look into. Each key is written about once per size, and nothing that is written is ever rewritten.

A short hash says where a key may be, never that it is there: the commit itself has the whole
(`recent_keys.py`). So two keys with one short hash are no harm.

Must not break: runs are in the order of their youngest entry, so expired ones are at the front; an entry
leaves the log only with a run whose *youngest* is older than the lifetime.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from sys import byteorder
from typing import ClassVar, Final, NamedTuple

from cynosure.common.errors import CorruptObject, NewerFormat
from cynosure.persistence.objects import ObjectType
from cynosure.persistence.spi import ObjId

TAIL_ENTRIES: Final = 128
"""More make every commit larger, fewer make more runs."""
FAN_IN: Final = 8
LARGEST_MERGED: Final = 32 * 1024
"""Runs of so many entries are left alone. It is a commit that merges, and others wait for it: to make 65,536
entries one run, the most there is unless groups are large, took twenty milliseconds."""

FORMAT: Final = 1
_HEADER = struct.Struct(">BH")
_RUN = struct.Struct(">QIQ")
_ENTRY = struct.Struct(">8sQ")
ENTRY_BYTES: Final = _ENTRY.size
_HASH_BYTES: Final = 8
_HASH_BITS: Final = 8 * _HASH_BYTES
_PLACES: Final = 8


def short_hash(key_hash: str) -> bytes:
    """Where to look for a key. Stored, so it never changes."""
    return blake2b(key_hash.encode(), digest_size=_HASH_BYTES).digest()


class KeyRun:
    """Entries in the order of their hashes. Immutable."""

    __slots__ = ("_hashes", "data", "shift", "taken")

    def __init__(self, data: bytes) -> None:
        if not data or len(data) % ENTRY_BYTES:
            raise ValueError("A run of keys is cut off")
        self.data: Final = data
        numbers = array("Q", data)
        if byteorder == "little":
            numbers.byteswap()
        self._hashes = numbers[::2]
        # Most keys that are looked for are new. A table of what the hashes begin with, at most one place in
        # eight taken, says so in a tenth of the time of a search.
        bits = (_PLACES * len(self._hashes) - 1).bit_length()
        self.shift: Final = _HASH_BITS - bits
        self.taken: Final = bytearray(1 << bits)
        """A hash is in this run only if `taken[hash >> shift]`."""
        shift, taken = self.shift, self.taken
        for number in self._hashes:
            taken[number >> shift] = 1

    @classmethod
    def of(cls, *entries: bytes) -> "KeyRun":
        """From entries of tails and runs, in any order."""
        each = [data[at : at + ENTRY_BYTES] for data in entries for at in range(0, len(data), ENTRY_BYTES)]
        # Runs are sorted already, which Python's sort makes use of.
        each.sort()
        return cls(b"".join(each))

    @property
    def count(self) -> int:
        """Entries in this run."""
        return len(self._hashes)

    def find(self, number: int) -> list[ObjId]:
        """Commits that may have a key whose short hash is this number."""
        hashes = self._hashes
        at = bisect_left(hashes, number)
        found: list[ObjId] = []
        while at < len(hashes) and hashes[at] == number:
            found.append(_ENTRY.unpack_from(self.data, at * ENTRY_BYTES)[1])
            at += 1
        return found


class _RunCodec:
    def encode(self, value: KeyRun) -> bytes:
        return value.data

    def decode(self, payload: bytes, version: int) -> KeyRun:
        return KeyRun(payload)

    def weigh(self, value: KeyRun, payload_bytes: int) -> int:
        # The bytes as they are stored, their hashes once more for the search, and 8 to 16 places for each.
        return 300 + payload_bytes + payload_bytes // 2 + payload_bytes // ENTRY_BYTES * 2 * _PLACES


KEY_RUN: ObjectType[KeyRun] = ObjectType(
    name="key-run",
    codec=_RunCodec(),
    is_compressed=False,  # Hashes do not compress.
)


class RunRef(NamedTuple):
    """A run, as the log names it."""

    id: ObjId
    entries: int
    last_us: int
    """When the youngest entry was committed."""


class KeyLog:
    """The runs, oldest first, and the tail. Immutable."""

    EMPTY: ClassVar["KeyLog"]
    __slots__ = ("_packed", "runs", "tail")

    def __init__(self, runs: tuple[RunRef, ...], tail: bytes, packed: bytes | None = None) -> None:
        self.runs: Final = runs
        self.tail: Final = tail
        self._packed = packed

    def with_entries(self, hashes: Sequence[bytes], commit_id: ObjId) -> "KeyLog":
        """With these keys as the latest."""
        return KeyLog(self.runs, self.tail + b"".join([_ENTRY.pack(hash, commit_id) for hash in hashes]))

    def since(self, oldest_us: int) -> "KeyLog":
        """Without the runs whose entries all are older than this; itself when there are none."""
        runs = self.runs
        at = 0
        while at < len(runs) and runs[at].last_us < oldest_us:
            at += 1
        return KeyLog(runs[at:], self.tail) if at else self

    @property
    def is_tail_full(self) -> bool:
        """Whether it is time to make a run of the tail."""
        return len(self.tail) >= TAIL_ENTRIES * ENTRY_BYTES

    def mergeable(self) -> list[RunRef]:
        """The oldest runs of the smallest size of which there are enough to make one of them, if any."""
        by_size: dict[int, list[RunRef]] = {}
        for run in self.runs:
            if run.entries < LARGEST_MERGED:
                by_size.setdefault(_size_class(run.entries), []).append(run)
        for _, runs in sorted(by_size.items()):
            if len(runs) >= FAN_IN:
                return runs[:FAN_IN]
        return []

    def merged(self, old: Sequence[RunRef], new: RunRef) -> "KeyLog":
        """With one run in the place of several."""
        gone = set(old)
        runs = [run for run in self.runs if run not in gone]
        return KeyLog(tuple(sorted([*runs, new], key=lambda run: run.last_us)), self.tail)

    def tail_as(self, run: RunRef) -> "KeyLog":
        """With the tail made a run."""
        return KeyLog((*self.runs, run), b"")

    def find_in_tail(self, hash: bytes) -> Iterator[ObjId]:
        """Commits of the tail that may have a key of this hash."""
        tail = self.tail
        at = tail.find(hash)
        while at >= 0:
            if at % ENTRY_BYTES == 0:
                yield _ENTRY.unpack_from(tail, at)[1]
            at = tail.find(hash, at + 1)

    def pack(self) -> bytes:
        """Embedded form; of an empty log, nothing. Made once: who adds no key pays nothing."""
        if self._packed is None:
            runs = b"".join([_RUN.pack(*run) for run in self.runs])
            is_empty = not self.runs and not self.tail
            self._packed = b"" if is_empty else _HEADER.pack(FORMAT, len(self.runs)) + runs + self.tail
        return self._packed

    @classmethod
    def unpack(cls, packed: bytes) -> "KeyLog":
        """From the embedded form. Damage is `CorruptObject`, a later layout `NewerFormat`."""
        if not packed:
            return cls.EMPTY
        if packed[0] > FORMAT:
            raise NewerFormat(
                "A log of idempotency keys was written by a newer version",
                fix="Upgrade this server to the version that wrote it.",
                found=packed[0],
                known=FORMAT,
            )
        if len(packed) < _HEADER.size:
            raise CorruptObject("A log of idempotency keys is cut off", bytes=len(packed))
        tail_at = _HEADER.size + _HEADER.unpack_from(packed)[1] * _RUN.size
        if packed[0] < 1 or tail_at > len(packed) or (len(packed) - tail_at) % ENTRY_BYTES:
            raise CorruptObject("A log of idempotency keys is cut off", bytes=len(packed))
        runs = tuple(map(RunRef._make, _RUN.iter_unpack(packed[_HEADER.size : tail_at])))
        return cls(runs, packed[tail_at:], packed)


KeyLog.EMPTY = KeyLog((), b"")


def _size_class(entries: int) -> int:
    # Cut in the middle between a tail and `FAN_IN` of them: a group of requests may overfill a tail.
    size, highest = 0, TAIL_ENTRIES * FAN_IN // 2
    while entries >= highest:
        size, highest = size + 1, highest * FAN_IN
    return size
