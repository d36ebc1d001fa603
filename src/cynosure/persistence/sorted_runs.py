"""Sorting more entries than memory should hold: sorted runs in files, merged when they are read.

Must not break: memory stays below a few `run_bytes`, however many entries there are.
"""

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from struct import Struct
from typing import BinaryIO

_RUN_BYTES = 32 * 2**20
_ENTRY_BYTES = 200
"""What an entry takes in memory beside its bytes."""
_LENGTHS = Struct("<II")
_FILE_BUFFER_BYTES = 1 << 17

Entry = tuple[bytes, bytes]


class SortedRuns:
    """Entries of an index to be, added in any order and read in the order of their keys.

    Equal keys come out next to each other: what they mean is the reader's business.
    """

    def __init__(self, folder: Path, name: str, *, run_bytes: int = _RUN_BYTES) -> None:
        self._folder = folder
        self._name = name
        self._run_bytes = run_bytes
        self._entries: list[Entry] = []
        self._size_bytes = 0
        self._files: list[Path] = []
        self.count = 0

    def add(self, key: bytes, value: bytes = b"") -> None:
        """Take one entry."""
        self._entries.append((key, value))
        self.count += 1
        self._size_bytes += len(key) + len(value) + _ENTRY_BYTES
        if self._size_bytes >= self._run_bytes:
            self._spill()

    def read(self) -> Iterator[Entry]:
        """All entries in order. Nothing may be added any more."""
        self._entries.sort()
        with ExitStack() as stack:
            opened = [
                stack.enter_context(path.open("rb", buffering=_FILE_BUFFER_BYTES)) for path in self._files
            ]
            yield from heapq.merge(self._entries, *map(_read_run, opened))

    def _spill(self) -> None:
        self._entries.sort()
        path = self._folder / f"{self._name}-{len(self._files)}.run"
        with path.open("xb", buffering=_FILE_BUFFER_BYTES) as file:
            for key, value in self._entries:
                file.write(_LENGTHS.pack(len(key), len(value)) + key + value)
        self._files.append(path)
        self._entries.clear()
        self._size_bytes = 0


def _read_run(file: BinaryIO) -> Iterator[Entry]:
    while lengths := file.read(_LENGTHS.size):
        key_bytes, value_bytes = _LENGTHS.unpack(lengths)
        data = file.read(key_bytes + value_bytes)
        yield data[:key_bytes], data[key_bytes:]
