"""One scan of one version of a table, as one caller sees it: its files, page by page.

A maintainer must not break: when in doubt a file is in the plan; and no page waits for the manifests of
another one, so that the first is there before the plan is complete.
"""

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, TypeVar

from msgspec import Struct

from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.encoding import Chosen, Encoder, Envelope
from cynosure.catalog.planning.parts import EVERYTHING, Listed, Part, behind, cut
from cynosure.catalog.planning.request import Scan
from cynosure.catalog.planning.viewer import Viewer
from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.content_file_json import JsonTypes
from cynosure.iceberg.manifests.delete_index import DeleteIndex
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.partitioning import partition_types
from cynosure.iceberg.pruning.pruner import Pruner
from cynosure.iceberg.snapshots import Snapshot
from cynosure.storage.location import Location

R = TypeVar("R")
_MOST_PARTS: Final = 100
"""Of one answer; the last then stands for the rest of the plan."""
_MOST_PAGES: Final = 4
"""An answer has fewer files than this many pages, also where a list counts less than there are."""
_PAGE_BYTES: Final = 16 * 2**20
"""About how large an answer becomes: every task repeats what is left of the filter."""
_SLICE: Final = 2_000
"""Files that are worked on at once; others have their turn in between."""
_SLICE_BYTES: Final = 2**20
"""As much of filters is written at once."""
_TERM_BYTES: Final = 40
"""About what a term of a filter takes as JSON."""
_MANY_TESTS: Final = 100_000
"""So many take some hundredths of a second."""
_MOST_ROWS_KEPT: Final = 4
"""Large manifests are cut into several parts, which mostly come one after the other."""


class Page(Struct, frozen=True):
    """One answer of a plan."""

    tasks: list[bytes]
    delete_files: list[bytes]
    parts: tuple[Part, ...] = ()
    """What is still to be asked for."""
    paths: tuple[str, ...] = ()
    """Of all its files, where that was asked for."""


class _Manifests(Struct, frozen=True):
    """What a plan reads."""

    data: tuple[Listed, ...]
    deletes: DeleteIndex | None


class Planner:
    """Makes the pages of one plan; serves many requests at the same time."""

    def __init__(self, catalog: OpenCatalog, table: ManagedTable, scan: Scan, viewer: Viewer) -> None:
        self.catalog = catalog
        self._files = TableFiles(catalog, table)
        self._scan = scan
        self._page_files = catalog.shared.settings.planning.page_files
        metadata = table.metadata
        specs = {one.value.spec_id: one.value for one in metadata.partition_specs}
        types = {id_: partition_types(spec, metadata.current_schema()) for id_, spec in specs.items()}
        self._unpartitioned = [id_ for id_, spec in specs.items() if spec.is_unpartitioned]
        self._is_choosing = viewer.may_choose_by(scan.expression, scan.schema)
        chosen_by: BoundExpression = scan.expression if self._is_choosing else TRUE
        self._pruner = Pruner(chosen_by, specs, types)
        filter_bytes = len(scan.filter_json or b"")
        self._terms = 1 + filter_bytes // _TERM_BYTES
        self._slice = max(1, min(_SLICE, _SLICE_BYTES // max(1, filter_bytes)))
        self._min_rows = scan.min_rows if viewer.may_count else None
        self._encoder = Encoder(
            JsonTypes(types, scan.schema.find_type, viewer.bound_form),
            viewer,
            stats_ids=scan.stats_ids if viewer.has_files else frozenset(),
            expression=scan.expression,
            filter_json=scan.filter_json,
        )
        self._added_ids = frozenset(one.snapshot_id for one in scan.added_by or ())
        self._lock = asyncio.Lock()
        self._manifests: _Manifests | None = None
        self._rows: dict[int, Sequence[int]] = {}
        self._members: array[int] | None = None

    async def page(self, part: Part = EVERYTHING, *, with_paths: bool = False) -> Page:
        """The files of one part of the plan; of its rest, the first files and parts for the others."""
        manifests = await self._load()
        envelope = Envelope()
        paths: list[str] = []
        rows = size_bytes = 0
        parts = cut(manifests.data, part, self._page_files) if part.end is None else iter((part,))
        for own in parts:
            async for at, chosen in self._choose(manifests, own):
                before = len(envelope.tasks)
                self._encoder.add(envelope, chosen, manifests.deletes)
                size_bytes += sum(map(len, islice(envelope.tasks, before, None)))
                if with_paths:
                    paths += _paths(chosen, manifests.deletes)
                rows += self._count(chosen)
                if self._min_rows is not None and rows >= self._min_rows:
                    return Page(envelope.tasks, envelope.delete_files, paths=tuple(paths))
                if len(envelope.tasks) >= _MOST_PAGES * self._page_files or size_bytes >= _PAGE_BYTES:
                    left = chain(behind(own, at, chosen.rows[-1] + 1), parts)
                    return Page(envelope.tasks, envelope.delete_files, _limit(left), tuple(paths))
            if envelope.tasks:
                break
        return Page(envelope.tasks, envelope.delete_files, _limit(parts), tuple(paths))

    async def has(self, location: Location) -> bool:
        """Whether this is a file of the plan, or a delete file of one."""
        manifests = await self._load()
        async with self._lock:
            if self._members is None:
                self._members = await self._find_members(manifests)
        members, wanted = self._members, hash(location)
        at = bisect_left(members, wanted)
        return at < len(members) and members[at] == wanted

    async def _load(self) -> _Manifests:
        async with self._lock:
            if self._manifests is None:
                self._manifests = await self._find_manifests()
            return self._manifests

    async def _find_manifests(self) -> _Manifests:
        if self._scan.added_by is not None:
            return _Manifests(await self._find_added(self._scan.added_by), None)
        if self._scan.snapshot is None:
            return _Manifests((), None)
        listed = await self._files.list_manifests(self._scan.snapshot)
        kept = await self._find_kept(Listed(at, each) for at, each in enumerate(listed))
        data = [each for each in kept if each.manifest.content is ManifestContent.DATA]
        deletes = [each.manifest for each in kept if each.manifest.content is not ManifestContent.DATA]
        if not data or not deletes:
            return _Manifests(tuple(data), None)
        loaded = await self._files.load_deletes(deletes)
        # In a thread: a table that many deletes wait in has as many of them as files.
        index = await asyncio.to_thread(DeleteIndex, loaded, unpartitioned_specs=self._unpartitioned)
        return _Manifests(tuple(data), index if index else None)

    async def _find_added(self, appends: Sequence[Snapshot]) -> tuple[Listed, ...]:
        """The manifests that some appends have added, each once."""
        found: dict[str, ManifestFile] = {}
        for snapshot in appends:
            for each in await self._files.list_manifests(snapshot):
                # A snapshot of version 1 may name manifests without saying who added them: their entries do.
                is_of_these = each.added_snapshot_id is None or each.added_snapshot_id in self._added_ids
                if each.content is ManifestContent.DATA and is_of_these:
                    found.setdefault(each.path, each)
        return await self._find_kept(Listed(at, each) for at, each in enumerate(found.values()))

    async def _find_kept(self, listed: Iterable[Listed]) -> tuple[Listed, ...]:
        """The manifests in which the filter can find something."""
        all_ = tuple(listed)
        keeps = self._pruner.keeps_manifest
        return await self._run(len(all_), lambda: tuple([each for each in all_ if keeps(each.manifest)]))

    async def _run(self, files: int, work: Callable[[], R]) -> R:
        """Test so many files or manifests by the filter. A long filter is no reason for others to wait."""
        if files * self._terms < _MANY_TESTS:
            return work()
        threads = self.catalog.shared.plans.threads
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def _choose(self, manifests: _Manifests, part: Part) -> AsyncIterator[tuple[int, Chosen]]:
        """The files of a part, manifest by manifest, some at a time, and where their manifest is."""
        wanted = [each for each in manifests.data if each.at >= part.first and each.at < (part.end or 0)]
        async for each, manifest in self._load_some(wanted):
            find = partial(self._rows_of, each.at, manifest, is_kept=part.end_row is not None or part.row > 0)
            rows = await self._run(len(manifest), find)
            if part.row or part.end_row is not None:
                end = len(rows) if part.end_row is None else bisect_left(rows, part.end_row)
                rows = rows[bisect_left(rows, part.row) : end]
            for at in range(0, len(rows), self._slice):
                yield each.at, self._make_chosen(manifest, rows[at : at + self._slice], manifests.deletes)
                await asyncio.sleep(0)

    async def _load_some(self, wanted: Sequence[Listed]) -> AsyncIterator[tuple[Listed, Manifest]]:
        """Manifests, read side by side, but never all in memory: a list may say that they are small."""
        at_once = self._files.most_reads
        for at in range(0, len(wanted), at_once):
            some = wanted[at : at + at_once]
            loaded = await self._files.load_all(each.manifest for each in some)
            for pair in zip(some, loaded, strict=True):
                yield pair

    def _make_chosen(self, manifest: Manifest, rows: Sequence[int], index: DeleteIndex | None) -> Chosen:
        if self._is_choosing:
            residuals: Sequence[BoundExpression] = self._pruner.residuals(manifest, rows)
        else:
            residuals = [self._scan.expression] * len(rows)
        deletes: list[tuple[int, ...]] = []
        if index is not None:
            find = index.for_manifest(manifest).find
            deletes = [find(row) for row in rows]
            if not any(deletes):
                deletes = []
        return Chosen(manifest, rows, residuals, deletes)

    def _rows_of(self, at: int, manifest: Manifest, *, is_kept: bool) -> Sequence[int]:
        known = self._rows.get(at)
        if known is not None:
            return known
        rows: Sequence[int] = self._pruner.rows(manifest)
        if self._scan.added_by is not None:
            ids, statuses, snapshots = self._added_ids, manifest.statuses, manifest.snapshot_ids
            rows = [row for row in rows if statuses[row] == Status.ADDED and snapshots[row] in ids]
        if is_kept:
            if len(self._rows) >= _MOST_ROWS_KEPT:
                self._rows.pop(next(iter(self._rows)), None)
            self._rows[at] = rows
        return rows

    def _count(self, chosen: Chosen) -> int:
        """How many rows these files surely have for the scan."""
        if self._min_rows is None:
            return 0
        counts = chosen.manifest.record_counts.take(chosen.rows)
        deletes = chosen.deletes or [()] * len(counts)
        told = zip(counts, chosen.residuals, deletes, strict=True)
        return sum(count or 0 for count, residual, some in told if residual == TRUE and not some)

    async def _find_members(self, manifests: _Manifests) -> "array[int]":
        hashes: set[int] = set()
        for part in cut(manifests.data, EVERYTHING, self._page_files):
            async for _, chosen in self._choose(manifests, part):
                for path in _paths(chosen, manifests.deletes):
                    try:
                        hashes.add(hash(Location.parse(path)))
                    except BadInput:
                        # Nobody can ask for a place that has no name here.
                        continue
        return array("q", sorted(hashes))


def _limit(parts: Iterator[Part]) -> tuple[Part, ...]:
    told = tuple(islice(parts, _MOST_PARTS + 1))
    if len(told) <= _MOST_PARTS:
        return told
    last = told[_MOST_PARTS - 1]
    return (*told[: _MOST_PARTS - 1], Part(last.first, last.row))


def _paths(chosen: Chosen, index: DeleteIndex | None) -> list[str]:
    paths = [path or "" for path in chosen.manifest.paths.take(chosen.rows)]
    if index is not None:
        for number in {number for numbers in chosen.deletes for number in numbers}:
            manifest, row = index.files[number]
            paths.append(manifest.paths[row] or "")
    return paths
