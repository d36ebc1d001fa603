"""Manifests and manifest lists in memory, bounded by bytes; each is read once, however many ask for it.

Files of Iceberg are written once, so nothing here is ever out of date. What a manifest means depends on its
line in a list as well, which is why that is part of its key (`manifests/table_files.py`).

A maintainer must not break: who is given something from memory was checked as if it were read. Nothing here
knows of tables or rights.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

from cynosure.catalog.read_gate import ReadGate
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.common.telemetry.metrics import Counter, Gauge

T = TypeVar("T")

_HITS: Final = Counter("catalog", "manifest_hits", "Manifests and manifest lists found in memory.")
_READS: Final = Counter("catalog", "manifest_reads", "Manifests and manifest lists read from storage.")
_READ_BYTES: Final = Counter("catalog", "manifest_read_bytes", "Bytes of manifests and lists that were read.")
_KEPT_BYTES: Final = Gauge(
    "catalog", "manifest_bytes", "Estimated memory of manifests and manifest lists, over all workers."
)

_ENTRY_BYTES: Final = 600
"""The key, the entry and its place."""


class Decoded(NamedTuple):
    """What the bytes of a file are."""

    value: Any
    weight_bytes: int
    """Of the value in memory, about."""


class RecentManifests:
    """What was read last, of all catalogs of a process."""

    def __init__(self, settings: CatalogSettings) -> None:
        self.limit_bytes: Final = settings.manifests_bytes
        self._kept: OrderedDict[Hashable, Decoded] = OrderedDict()
        self._flights = SingleFlight()
        self._gate = ReadGate(most_files=settings.manifest_reads, most_bytes=settings.manifest_reads_bytes)
        # One thread: decoding is Python, and more of them would only take turns with the requests.
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="manifests")
        self.most_reads: Final = settings.manifest_reads
        """How many files are read at once; whoever asks for more at a time only makes others wait."""
        self.weight_bytes = 0

    def get(self, key: Hashable) -> Any | None:
        """What is in memory under this key."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        _HITS.inc()
        return found.value

    async def load(
        self,
        key: Hashable,
        read: Callable[[], Awaitable[bytes]],
        decode: Callable[[bytes], Decoded],
        *,
        size_bytes: int,
    ) -> Any:
        """What is in memory under this key, else what the bytes that `read` gives are.

        `decode` runs in a thread. One caller's cancellation does not end the others' reading.
        """
        known = self.get(key)
        if known is not None:
            return known

        async def work() -> Any:
            decoded = await self.read(read, decode, size_bytes=size_bytes)
            self.put(key, decoded)
            return decoded.value

        return await self._flights.run(key, work)

    async def read(
        self, read: Callable[[], Awaitable[bytes]], decode: Callable[[bytes], T], *, size_bytes: int
    ) -> T:
        """As `load`, without memory: for what may still change."""
        async with self._gate.turn(size_bytes):
            data = await read()
            _READS.inc()
            _READ_BYTES.inc(len(data))
            return await asyncio.get_running_loop().run_in_executor(self._decoder, decode, data)

    def put(self, key: Hashable, decoded: Decoded) -> None:
        """Keep something, unless it alone is more than may be kept; what was used longest ago makes room."""
        self._drop(self._kept.pop(key, None))
        if decoded.weight_bytes + _ENTRY_BYTES <= self.limit_bytes:
            self._kept[key] = decoded
            self.weight_bytes += decoded.weight_bytes + _ENTRY_BYTES
        while self.weight_bytes > self.limit_bytes:
            self._drop(self._kept.popitem(last=False)[1])
        _KEPT_BYTES.set(self.weight_bytes)

    def _drop(self, decoded: Decoded | None) -> None:
        if decoded is not None:
            self.weight_bytes -= decoded.weight_bytes + _ENTRY_BYTES
