"""What a random table is made of beside its files."""

from dataclasses import dataclass, field
from typing import Any

from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from tests.planning_oracle.shape import Row


@dataclass(frozen=True)
class Deletes:
    """What a delete file says."""

    positions: frozenset[tuple[str, int]] = frozenset()
    equal_ids: tuple[int, ...] = ()
    equal_values: tuple[tuple[Any, ...], ...] = ()

    def removes(self, path: str, position: int, row: Row) -> bool:
        if (path, position) in self.positions:
            return True
        return bool(self.equal_ids) and any(
            same(values, tuple(row.get(id_) for id_ in self.equal_ids)) for values in self.equal_values
        )


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return repr(one) == repr(other)


@dataclass(frozen=True)
class Live:
    """A file that is in the table: who added it, and its sequence number then."""

    file: ContentFile
    snapshot_id: int
    sequence_number: int


@dataclass
class Snapshot:
    """A state of the table."""

    id: int
    parent: int | None
    sequence_number: int
    schema_id: int
    operation: str
    manifest_list: str
    manifests: tuple[ManifestFile, ...] = ()
    alive: dict[str, frozenset[int]] = field(default_factory=dict)
    """Of each data file the positions of the rows that are left."""
    added: tuple[str, ...] = ()
    """Paths of data files that this commit added."""
    is_embedded: bool = False
    """Version 1 allows a snapshot to name its manifests itself."""
    first_row_id: int | None = None
