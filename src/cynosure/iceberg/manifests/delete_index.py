"""Which delete files apply to which data file.

Iceberg's rules, with the sequence numbers of the data:

- a deletion vector: to the data file it names, if that is not newer; it replaces all position delete files
- a position delete file: to the data file it names, or else to all of its partition, that are not newer
- an equality delete file: to all older data files of its partition, or of the table if it has no partition

A maintainer must not break: a delete file too many costs time, one too few brings deleted rows back. When in
doubt, a delete file applies.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable
from math import isnan
from struct import pack
from typing import Any, Final, NamedTuple

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.manifest import Manifest

PATH_COLUMN: Final = 2_147_483_546
"""The id of the column of a position delete file that names data files."""

_NAN: Final = b"nan"


class DeleteFile(NamedTuple):
    """Where a delete file is: a manifest and its number there."""

    manifest: Manifest
    row: int


class _Applying(NamedTuple):
    """A delete file among others, ordered by sequence number."""

    sequence_number: int
    number: int


class DeleteIndex:
    """The live delete files of a snapshot, ready to be asked. Nothing changes after it was made."""

    def __init__(self, manifests: Iterable[Manifest], *, unpartitioned_specs: Collection[int]) -> None:
        """`unpartitioned_specs` are those without fields, or with void ones only."""
        files: list[DeleteFile] = []
        self._vectors: dict[str, _Applying] = {}
        self._by_path: dict[str, list[_Applying]] = {}
        self._positions: dict[tuple[Any, ...], list[_Applying]] = {}
        self._equalities: dict[tuple[Any, ...], list[_Applying]] = {}
        self._everywhere: list[_Applying] = []
        self._unpartitioned = frozenset(unpartitioned_specs)
        for manifest in manifests:
            keys = partition_keys(manifest)
            for row, status in enumerate(manifest.statuses):
                if status != Status.DELETED:
                    self._add(manifest, row, keys, len(files))
                    files.append(DeleteFile(manifest, row))
        self.files: Final = tuple(files)
        """All delete files; a number that `find` gives is a place in it."""

    def __bool__(self) -> bool:
        return bool(self.files)

    def for_manifest(self, manifest: Manifest) -> "ManifestDeletes":
        """The index as the files of one data manifest see it."""
        return ManifestDeletes(self, manifest)

    def find(
        self, path: str, sequence_number: int, spec_id: int, partition: tuple[Any, ...]
    ) -> tuple[int, ...]:
        """The delete files that apply to a data file, in ascending order."""
        key = (spec_id, *map(_part, partition))
        return self._find(path, sequence_number, *self._of_partition(key))

    def _of_partition(self, key: tuple[Any, ...]) -> tuple[list[_Applying], list[_Applying]]:
        return self._positions.get(key, []), self._equalities.get(key, [])

    def _find(
        self, path: str, number: int, positions: list[_Applying], equalities: list[_Applying]
    ) -> tuple[int, ...]:
        found: list[_Applying] = []
        vector = self._vectors.get(path)
        if vector is not None and vector.sequence_number >= number:
            found.append(vector)
        else:
            # Not older than the data: rows that one commit both adds and deletes are gone.
            for some in (self._by_path.get(path, ()), positions):
                found += some[bisect_left(some, (number, -1)) :]
        for some in (equalities, self._everywhere):
            # Newer than the data: a commit's equality deletes are not about its own rows.
            found += some[bisect_right(some, (number, len(self.files))) :]
        return tuple(sorted(one.number for one in found))

    def _add(self, manifest: Manifest, row: int, keys: list[tuple[Any, ...]], number: int) -> None:
        sequence_number = manifest.sequence_numbers[row]
        content = manifest.contents[row]
        key = keys[manifest.partition_numbers[row] or 0]
        if sequence_number is None or content == Content.DATA:
            raise InvalidManifest("A manifest of delete files lists something else", path=manifest.path)
        one = _Applying(sequence_number, number)
        if content == Content.EQUALITY_DELETES:
            if manifest.spec_id in self._unpartitioned:
                insort(self._everywhere, one)
            else:
                insort(self._equalities.setdefault(key, []), one)
            return
        path = manifest.referenced_data_files[row] or _only_path(manifest, row)
        if manifest.formats[row] == "puffin" and path is not None:
            other = self._vectors.get(path)
            if other is not None:
                raise InvalidManifest(
                    "Two deletion vectors are for one data file", path=manifest.path, file=path
                )
            self._vectors[path] = one
        elif path is not None:
            insort(self._by_path.setdefault(path, []), one)
        else:
            insort(self._positions.setdefault(key, []), one)


class ManifestDeletes:
    """What a `DeleteIndex` knows of the files of one data manifest. For one plan; not for many threads."""

    def __init__(self, index: DeleteIndex, manifest: Manifest) -> None:
        self._index = index
        self._manifest = manifest
        self._partitions: dict[int, tuple[list[_Applying], list[_Applying]]] = {}

    def find(self, row: int) -> tuple[int, ...]:
        """The delete files that apply to a file, in ascending order."""
        if not self._index:
            return ()
        manifest, index = self._manifest, self._index
        number = manifest.partition_numbers[row] or 0
        lists = self._partitions.get(number)
        if lists is None:
            key = (manifest.spec_id, *map(_part, manifest.partitions.get(number)))
            lists = self._partitions[number] = index._of_partition(key)
        return index._find(manifest.paths[row] or "", manifest.sequence_numbers[row] or 0, *lists)


def partition_keys(manifest: Manifest) -> list[tuple[Any, ...]]:
    """For each partition of a manifest, the spec and values by which it is told from others of its table."""
    partitions = manifest.partitions
    if not partitions.count:
        return [(manifest.spec_id,)]
    return [(manifest.spec_id, *map(_part, partitions.get(number))) for number in range(partitions.count)]


def _part(value: Any) -> Any:
    """A partition value that can be compared: NaN equals NaN, and the two zeros differ."""
    if isinstance(value, float):
        return _NAN if isnan(value) else pack("<d", value)
    return value


def _only_path(manifest: Manifest, row: int) -> str | None:
    """The data file of a position delete file that is about one only, as its bounds tell."""
    lower, upper = manifest.lower_bounds.get(PATH_COLUMN), manifest.upper_bounds.get(PATH_COLUMN)
    if lower is None or upper is None:
        return None
    path = lower[row]
    return path.decode("utf-8", "replace") if path is not None and path == upper[row] else None
