"""The files of a table, listed and expanded on Spark's executors.

    places ──► listing ──────────────────────────────┐
    metadata ──► manifest lists ──► manifests (each  ├──► (file, (size, role)): one row for each file,
                 by one executor)   once: a shuffle) ┘     whatever names it (a shuffle)

A file that is outside, missing or damaged is a row as well, under a place that there is not. So everything is
read once, and the driver holds no paths.

A maintainer must not break: functions that executors run are functions of modules, and all they are given is
in `Reach`, which no one logs.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cynosure.common.clock import SystemClock
from cynosure.delegation.jobs.live_files.expanding import Expanding, Trouble
from cynosure.delegation.jobs.live_files.listing import list_places
from cynosure.delegation.jobs.live_files.patient import PatientFileIO
from cynosure.delegation.jobs.live_files.places import Named, Places
from cynosure.delegation.jobs.live_files.references import References, Role
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.storage.fileio import FileInfo, FileIO
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

NOT_LISTED: Final = -1
NOT_NAMED: Final = -1
TROUBLES: Final[Mapping[int, str]] = {
    -1: "outside",
    -2: "missing",
    -3: "corrupt",
    -4: "encrypted",
    -5: "unreachable",
}
"""What a row stands for whose place is below zero."""
OUTSIDE, _MISSING, _CORRUPT, _ENCRYPTED, _UNREACHABLE = TROUBLES
_AT_ONCE: Final = 64
_NAMED_AT_ONCE: Final = 10_000
_READ_AT_ONCE: Final = 10

Known = tuple[Named, tuple[int, int, int]]
"""A file, and its size, when it was last written, and its role; where they are known."""


class Reach(Struct, frozen=True):
    """How an executor reaches the files of one table."""

    places: tuple[str, ...]
    without: str
    """Where the job keeps files of its own."""
    properties: dict[str, str]
    named: tuple[str, ...] = ()
    """Places that files are named by, where they are others."""

    def __repr__(self) -> str:
        return f"Reach({self.places!r}, …)"

    def open(self, check: Callable[[], None] = lambda: None) -> tuple[FileIO, Places]:
        """The files; `check` is called before each change.

        Local ones are reached where the driver's worker may reach them.
        """
        places = Places([Location.parse(each) for each in self.places])
        files = open_vended(
            self.properties, places.all, StorageSettings(), SystemClock(), file_roots=places.all
        )
        return PatientFileIO(files, SystemClock(), check), places

    def names(self) -> Places:
        """The places that files are named by."""
        return Places([Location.parse(each) for each in self.named or self.places])


def list_files(context: "SparkContext", reach: Reach) -> "RDD[Known]":
    """A row for each file that is there."""
    numbers = range(len(reach.places))
    return context.parallelize(numbers, len(numbers)).mapPartitions(partial(_list, reach))


def join_rows(context: "SparkContext", rows: "Sequence[RDD[Known]]") -> "RDD[Known]":
    """One row for each file, and for each trouble."""
    return context.union(list(rows)).reduceByKey(_join, context.defaultParallelism * 2)


def expand_files(
    context: "SparkContext", reach: Reach, references: References, *, with_deleted: bool
) -> "RDD[Known]":
    """Rows for each file that is named, and for each trouble."""
    from pyspark import StorageLevel  # noqa: PLC0415 - where there is Spark only

    width = context.defaultParallelism * 2
    direct = [
        *references.files,
        *((Role.MANIFEST_LIST, path) for path in references.lists),
        *((Role.MANIFEST, path) for path in references.manifests),
    ]
    named = context.parallelize(direct, 1 + len(direct) // _NAMED_AT_ONCE).mapPartitions(
        partial(_name, reach)
    )
    # A task for a few files costs more than reading them.
    parts = min(width, 1 + len(references.lists) // _READ_AT_ONCE)
    lines: RDD[Any] = context.parallelize(references.lists, parts).mapPartitions(partial(_read_lists, reach))
    # Used twice, read once.
    lines = lines.persist(StorageLevel.DISK_ONLY)
    manifests = (
        lines.filter(_is_line)
        .union(context.parallelize([(path, None) for path in references.manifests], 1))
        .reduceByKey(_first, width)
    )
    content = manifests.mapPartitions(partial(_read_manifests, reach, with_deleted))
    troubles = lines.filter(_is_known)
    return context.union([named, troubles, content])


# On executors.


def _first(one: Any, _: Any) -> Any:
    return one


def _is_line(row: tuple[Any, Any]) -> bool:
    return isinstance(row[0], str)


def _is_known(row: tuple[Any, Any]) -> bool:
    return not isinstance(row[0], str)


def _join(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _list(reach: Reach, numbers: Iterable[int]) -> Iterator[Known]:
    files, places = reach.open()
    without = Location.parse(reach.without)
    with asyncio.Runner() as runner:
        for number in numbers:
            pages = list_places(files, Places([places.all[number]]), without)
            while page := runner.run(_next_page(pages)):
                for each in page:
                    if (named := places.name(each.location)) is not None:
                        yield named, (each.size_bytes, each.modified_us, NOT_NAMED)


async def _next_page(pages: Any) -> list[FileInfo] | None:
    page: list[FileInfo] | None = await anext(pages, None)
    return page


def _name(reach: Reach, found: Iterable[tuple[Role, str]]) -> Iterator[Known]:
    names = reach.names()
    for role, path in found:
        yield _known(names, role, path)


def _known(places: Places, role: Role, path: str) -> Known:
    named = places.find(path)
    if named is None:
        return _trouble(OUTSIDE, path)
    return named, (NOT_LISTED, 0, int(role))


def _trouble(kind: int, path: str) -> Known:
    return (kind, path.encode(errors="replace").decode()), (NOT_LISTED, 0, NOT_NAMED)


def _tell(trouble: Trouble) -> Iterator[Known]:
    for kind, paths in (
        (_MISSING, trouble.missing),
        (_CORRUPT, trouble.corrupt),
        (_ENCRYPTED, trouble.encrypted),
        (_UNREACHABLE, trouble.unreachable),
    ):
        yield from (_trouble(kind, path) for path in paths)


def _read_lists(reach: Reach, paths: Iterable[str]) -> Iterator[Any]:
    """Lines of lists by the paths of their manifests; rows for the manifests, and for troubles."""
    (files, places), names = reach.open(), reach.names()
    with asyncio.Runner() as runner:
        for path in paths:
            expanding = Expanding(files, places, with_deleted=True)
            for line in runner.run(expanding.read_list(path)):
                yield line.path, line
                yield _known(names, Role.MANIFEST, line.path)
            yield from _tell(expanding.trouble)


def _read_manifests(
    reach: Reach, with_deleted: bool, wanted: Iterable[tuple[str, ManifestFile | None]]
) -> Iterator[Known]:
    (files, places), names = reach.open(), reach.names()
    rest = iter(wanted)
    with asyncio.Runner() as runner:
        # Few at a time, so that every trouble is named.
        while some := list(islice(rest, _AT_ONCE)):
            expanding = Expanding(files, places, with_deleted=with_deleted)
            pages = expanding.read_manifests(some)
            while (page := runner.run(_next_found(pages))) is not None:
                yield from (_known(names, role, path) for role, path in page)
            yield from _tell(expanding.trouble)


async def _next_found(pages: Any) -> list[tuple[Role, str]] | None:
    page: list[tuple[Role, str]] | None = await anext(pages, None)
    return page
