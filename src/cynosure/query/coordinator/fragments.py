"""Files of a plan as fragments: split by bytes, packed largest first, considering who is busy.

A maintainer must not break: every row group of every file is in exactly one fragment, and each fragment has
all delete files of its data files.
"""

import math
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from cynosure.query.catalog_access.port import PlannedFiles
from cynosure.query.coordinator.scheduling import assign_largest_first
from cynosure.query.engine import WorkerInfo
from cynosure.query.scan_task import DataFile, ScanTask

_MOST_FRAGMENTS: Final = 10_000
_PARQUET: Final = "parquet"


def make_fragments(
    base: ScanTask,
    planned: PlannedFiles,
    *,
    split_size: int,
    workers: Sequence[WorkerInfo] = (),
    may_split: bool = True,
) -> tuple[ScanTask, ...]:
    """Tasks like `base` that together read all planned files, the largest first."""
    parts: list[DataFile] = []
    offsets = planned.offsets or ((),) * len(planned.files)
    for file, each in zip(planned.files, offsets, strict=True):
        parts += split_file(file, each, split_size) if may_split else [file]
    if not parts:
        return ()
    costs = [_cost(each) for each in parts]
    loads = _loads(costs, workers, split_size)
    bins: list[list[DataFile]] = [[] for _ in loads]
    for part, place in zip(parts, assign_largest_first(costs, loads), strict=True):
        bins[place].append(part)
    filled = sorted((each for each in bins if each), key=lambda files: -sum(map(_cost, files)))
    return tuple(_task(base, planned, files, number) for number, files in enumerate(filled))


def split_file(file: DataFile, offsets: Sequence[int], split_size: int) -> list[DataFile]:
    """Parts of a file of about this size, cut where its row groups begin.

    Without offsets the cuts are at multiples of the size: a row group belongs to the part that it begins in.
    """
    if file.format != _PARQUET or file.size_bytes <= split_size:
        return [file]
    inside = offsets[1:] if offsets else range(split_size, file.size_bytes, split_size)
    cuts, previous = [0], 0
    for end in (*inside, file.size_bytes):
        # A row group that would make the part too large begins the next one.
        if end - cuts[-1] > split_size and previous > cuts[-1]:
            cuts.append(previous)
        previous = end
    if len(cuts) == 1:
        return [file]
    ends = [*cuts[1:], file.size_bytes]
    return [replace(file, begin=begin, end=end) for begin, end in zip(cuts, ends, strict=True)]


def _cost(file: DataFile) -> int:
    return (file.end - file.begin) or file.size_bytes


def _loads(costs: Sequence[int], workers: Sequence[WorkerInfo], split_size: int) -> list[int]:
    """A bin for each fragment there will be, with what its worker has to do already."""
    total = sum(costs)
    healthy = [each for each in workers if each.is_healthy]
    slots = sum(max(1, each.cores) for each in healthy) or 1
    count = min(len(costs), max(slots, math.ceil(total / split_size)), _MOST_FRAGMENTS)
    if not healthy:
        return [0] * count
    average = max(1, total // count)
    return [
        healthy[place % len(healthy)].active_fragments
        * average
        // max(1, healthy[place % len(healthy)].cores)
        for place in range(count)
    ]


def _task(base: ScanTask, planned: PlannedFiles, files: list[DataFile], number: int) -> ScanTask:
    places: dict[int, int] = {}
    for file in files:
        for delete in file.deletes:
            places.setdefault(delete, len(places))
    return replace(
        base,
        fragment_id=f"{base.fragment_id}-{number}",
        files=tuple(replace(each, deletes=tuple(places[one] for one in each.deletes)) for each in files),
        deletes=tuple(planned.deletes[place] for place in places),
    )
