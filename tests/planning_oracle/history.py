"""A random table and its history, as engines would have made it; and which rows it really has.

Every step is a commit: files appended, removed, compacted, manifests rewritten or merged, rows deleted by
position, by value or by deletion vector, and the schema, the partitioning or the format version changed.

A maintainer must not break: which rows are left is written down when a commit deletes them, and never worked
out from sequence numbers: that is what is tested.
"""

import random
from typing import Any

from msgspec.structs import replace

from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.delete_index import PATH_COLUMN
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.write_manifest import (
    ManifestKind,
    spec_fields_json,
    write_manifest,
    write_manifest_list,
)
from cynosure.iceberg.partitioning import PartitionSpec, partition_types
from tests.planning_oracle.model import Deletes, Live, Snapshot, same
from tests.planning_oracle.shape import Row, Shape
from tests.planning_oracle.values import Metrics, next_to, stored_value, type_of


class RandomTable:
    """A table with its files in memory."""

    def __init__(self, seed: int, location: str, *, is_plain: bool, steps: int = 9) -> None:
        """Plain: only what PyIceberg plans exactly as the specification says (see `their_plan.py`)."""
        self.rng = rng = random.Random(seed)
        self.is_plain = is_plain
        self.location = location
        self.version = rng.choice([1, 2, 2, 2, 3, 3])
        self.shape = Shape(rng, self.version, is_plain=is_plain)
        self.files: dict[str, bytes] = {}
        self.rows: dict[str, list[Row]] = {}
        self.deletes: dict[str, Deletes] = {}
        """By path, and for deletion vectors with their offset: `path#offset`."""
        self.snapshots: list[Snapshot] = []
        self.next_row_id = 0
        self._number = 0
        self._live: dict[str, Live] = {}
        self._live_deletes: dict[str, Live] = {}
        self._entries: dict[str, list[Entry]] = {}
        """Of each manifest, as a reader must see them."""
        self._manifests: list[ManifestFile] = []
        self._alive: dict[str, frozenset[int]] = {}
        self._dead_positions: dict[str, frozenset[int]] = {}
        self.append()
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        rng = self.rng
        kind = rng.random()
        if kind < 0.36:
            self.append()
        elif kind < 0.42:
            self.remove()
        elif kind < 0.48:
            self.compact()
        elif kind < 0.54:
            self.rewrite_manifests()
        elif kind < 0.72:
            self.delete_rows()
        elif kind < 0.85:
            self.shape.evolve()
        elif kind < 0.95:
            self.shape.add_spec()
        elif self.version < 3:
            self.version += 1
            self.shape.version = self.version

    # Commits.

    def append(self) -> None:
        added = [self._new_data_file() for _ in range(self.rng.randrange(1, 5))]
        merged = self._pick_to_merge(added[0].spec_id) if self.rng.random() < 0.3 else None
        self._commit("append", added=added, merged=merged)

    def remove(self) -> None:
        if self._live:
            self._commit("delete", removed={self.rng.choice(sorted(self._live))})

    def compact(self) -> None:
        """A data file without its deleted rows; its deletion vector goes with the old one."""
        if not self._live:
            return
        path = self.rng.choice(sorted(self._live))
        old = self._live[path].file
        rows = [self.rows[path][at] for at in sorted(self._alive[path])]
        spec = self.shape.specs[old.spec_id]
        if not self.shape.is_usable(spec):
            return
        gone = {key for key, one in self._live_deletes.items() if one.file.referenced_data_file == path}
        self._commit("replace", added=[self._write_rows(spec, rows)], removed={path}, removed_deletes=gone)

    def rewrite_manifests(self) -> None:
        candidates = [one for one in self._manifests if self._can_rewrite(one)]
        if not candidates:
            return
        first = self.rng.choice(candidates)
        same = [one for one in candidates if (one.spec_id, one.content) == (first.spec_id, first.content)]
        self._commit("replace", rewritten=same)

    def delete_rows(self) -> None:
        rng = self.rng
        full = sorted(path for path in self._live if self.rows[path])
        if self.version == 1 or not full:
            return
        added = [self._new_data_file()] if rng.random() < 0.3 else []
        target = rng.choice(full)
        if rng.random() < 0.4 and not self.is_plain:
            self._delete_equal(target, added)
        elif self.version > 2:
            self._delete_by_vector(target, added)
        else:
            self._delete_positions(target, added)

    def _delete_equal(self, target: str, added: list[ContentFile]) -> None:
        rng = self.rng
        file = self._live[target].file
        spec = self.shape.specs[file.spec_id]
        everywhere = [one for one in self.shape.specs if all(f.transform == "void" for f in one.fields)]
        if everywhere and rng.random() < 0.4:
            spec = rng.choice(everywhere)
        is_global = all(one.transform == "void" for one in spec.fields)
        ids = tuple(sorted(rng.sample([one.id for one in self.shape.leaves()], k=rng.choice([1, 1, 2]))))
        values = (tuple(rng.choice(self.rows[target]).get(id_) for id_ in ids),)
        partition = (None,) * len(spec.fields) if is_global else file.partition
        deletes = Deletes(equal_ids=ids, equal_values=values)
        if rng.random() < 0.6 and self.shape.is_usable(self.shape.specs[file.spec_id]):
            # As an upsert does it: the rows are deleted, and written again by the same commit.
            again = [dict(row) for row in self.rows[target]]
            added = [*added, self._write_rows(self.shape.specs[file.spec_id], again, file.partition)]
        made = self._new_delete_file(Content.EQUALITY_DELETES, spec, partition, len(values), equality_ids=ids)
        self.deletes[made.path] = deletes
        for path, live in self._live.items():
            is_there = live.file.spec_id == spec.spec_id and same(live.file.partition, partition)
            if is_global or is_there:
                self._alive[path] = frozenset(
                    at for at in self._alive[path] if not deletes.removes("", at, self.rows[path][at])
                )
        self._commit("overwrite", added=added, deletes=[made])

    def _delete_positions(self, target: str, added: list[ContentFile]) -> None:
        """Of one data file or several of its partition, which may be new in this commit."""
        rng = self.rng
        file = self._live[target].file
        near = [
            path
            for path, one in self._live.items()
            if one.file.spec_id == file.spec_id and same(one.file.partition, file.partition)
        ]
        near += [
            one.path for one in added if one.spec_id == file.spec_id and same(one.partition, file.partition)
        ]
        paths = sorted(rng.sample(near, k=min(len(near), rng.choice([1, 1, 2]))))
        positions = frozenset(
            (path, rng.randrange(len(self.rows[path]))) for path in paths if self.rows[path]
        )
        if not positions:
            return
        more: dict[str, Any] = {}
        named = sorted({path for path, _ in positions})
        if len(named) == 1 and rng.random() < 0.4:
            bounds = {PATH_COLUMN: named[0].encode()}
            more = {"lower_bounds": bounds, "upper_bounds": bounds}
        if len(named) == 1 and not self.is_plain and rng.random() < 0.4:
            more["referenced_data_file"] = named[0]
        spec = self.shape.specs[file.spec_id]
        made = self._new_delete_file(Content.POSITION_DELETES, spec, file.partition, len(positions), **more)
        self.deletes[made.path] = Deletes(positions)
        self._kill(positions)
        self._commit("overwrite", added=added, deletes=[made])

    def _delete_by_vector(self, target: str, added: list[ContentFile]) -> None:
        rng = self.rng
        file = self._live[target].file
        self._kill(frozenset({(target, rng.randrange(len(self.rows[target])))}))
        positions = frozenset((target, at) for at in self._dead_positions[target])
        replaced = {
            key
            for key, one in self._live_deletes.items()
            if one.file.is_deletion_vector and one.file.referenced_data_file == target
        }
        offset = rng.randrange(4, 400)
        made = self._new_delete_file(
            Content.POSITION_DELETES,
            self.shape.specs[file.spec_id],
            file.partition,
            len(positions),
            referenced_data_file=target,
            content_offset=offset,
            content_size_bytes=40,
            format="puffin",
        )
        self.deletes[made.path] = Deletes(positions)
        self._commit("overwrite", added=added, deletes=[made], removed_deletes=replaced)

    def _kill(self, positions: frozenset[tuple[str, int]]) -> None:
        for path, at in positions:
            self._alive[path] = self._alive[path] - {at}
            self._dead_positions[path] = self._dead_positions.get(path, frozenset()) | {at}

    # Files.

    def _new_path(self, kind: str, ending: str) -> str:
        self._number += 1
        return f"{self.location}/{kind}-{self._number:04}.{ending}"

    def _new_data_file(self) -> ContentFile:
        rng = self.rng
        usable = [one for one in self.shape.specs if self.shape.is_usable(one)]
        spec = self.shape.specs[-1] if rng.random() < 0.8 else rng.choice(usable)
        first = self._new_row()
        partition = self.shape.partition(spec, first)
        rows = [first]
        for _ in range(rng.randrange(6)):
            rows.append(self._new_row() | self._same_partition(spec, first))
        return self._write_rows(spec, [] if rng.random() < 0.04 else rows, partition)

    def _same_partition(self, spec: PartitionSpec, first: Row) -> Row:
        """Other values of the columns that a row is partitioned by, in the same partition where there are."""
        types = {one.id: one.type for one in self.shape.leaves()}
        wanted = self.shape.partition(spec, first)
        found: Row = {
            one.source_id: first.get(one.source_id) for one in spec.fields if one.source_id in types
        }
        for id_ in found:
            for _ in range(4):
                near = first.get(id_)
                other = (
                    stored_value(types[id_], self.rng, is_plain=self.is_plain)
                    if near is None or self.rng.random() < 0.5
                    else next_to(types[id_], near, self.rng)
                )
                if same(self.shape.partition(spec, first | found | {id_: other}), wanted):
                    found[id_] = other
        return found

    def _new_row(self) -> Row:
        return {
            one.id: stored_value(one.type, self.rng, is_plain=self.is_plain) for one in self.shape.leaves()
        }

    def _write_rows(
        self, spec: PartitionSpec, rows: list[Row], partition: tuple[Any, ...] | None = None
    ) -> ContentFile:
        path = self._new_path("data/f", "parquet")
        if partition is None:
            partition = self.shape.partition(spec, rows[0]) if rows else (None,) * len(spec.fields)
        metrics = Metrics()
        if self.rng.random() < 0.93:
            for one in self.shape.leaves():
                values = [row.get(one.id) for row in rows]
                metrics.add(one.id, type_of(one.type), values, self.rng, is_complete=self.is_plain)
        self.rows[path] = rows
        self._alive[path] = frozenset(range(len(rows)))
        return ContentFile(
            path=path,
            format="parquet",
            spec_id=spec.spec_id,
            partition=partition,
            record_count=len(rows),
            file_size_bytes=100 + len(rows),
            **metrics.as_fields(),
        )

    def _new_delete_file(
        self, content: Content, spec: PartitionSpec, partition: tuple[Any, ...], count: int, **more: Any
    ) -> ContentFile:
        values: dict[str, Any] = {"format": "parquet", **more}
        return ContentFile(
            path=self._new_path("data/d", values["format"]),
            content=content,
            spec_id=spec.spec_id,
            partition=partition,
            record_count=count,
            file_size_bytes=50,
            **values,
        )

    # Manifests.

    def _can_rewrite(self, manifest: ManifestFile) -> bool:
        return self.shape.is_usable(self.shape.specs[manifest.spec_id])

    def _pick_to_merge(self, spec_id: int) -> ManifestFile | None:
        found = [
            one
            for one in self._manifests
            if one.spec_id == spec_id and one.content is ManifestContent.DATA and self._can_rewrite(one)
        ]
        return self.rng.choice(found) if found else None

    def _commit(
        self,
        operation: str,
        *,
        added: list[ContentFile] = [],  # noqa: B006
        deletes: list[ContentFile] = [],  # noqa: B006
        removed: set[str] = set(),  # noqa: B006
        removed_deletes: set[str] = set(),  # noqa: B006
        merged: ManifestFile | None = None,
        rewritten: list[ManifestFile] = [],  # noqa: B006
    ) -> None:
        id_ = 1000 + len(self.snapshots) * 7
        sequence = 0 if self.version == 1 else len(self.snapshots) + 1
        gone = removed | removed_deletes
        manifests: list[ManifestFile] = []
        kept: list[Entry] = []
        for one in self._manifests:
            entries = self._entries[one.path]
            if one == merged or one in rewritten:
                kept += [_existing(entry) for entry in entries if entry.status is not Status.DELETED]
            elif any(entry.file.path in gone for entry in entries if entry.status is not Status.DELETED):
                left = [
                    _removed(entry, id_) if entry.file.path in gone else _existing(entry)
                    for entry in entries
                    if entry.status is not Status.DELETED
                ]
                manifests.append(self._write(left, one.content, id_, sequence))
            else:
                manifests.append(one)
        number = None if self.version > 1 else 0
        new = [Entry(Status.ADDED, id_, number, number, one) for one in added]
        for spec_id in sorted({entry.file.spec_id for entry in [*new, *kept]}):
            some = [entry for entry in [*new, *kept] if entry.file.spec_id == spec_id]
            for content in ManifestContent:
                chosen = [entry for entry in some if min(1, entry.file.content) == content]
                if chosen:
                    manifests.append(self._write(chosen, content, id_, sequence))
        for one in deletes:
            entry = Entry(Status.ADDED, id_, None, None, one)
            manifests.append(self._write([entry], ManifestContent.DELETES, id_, sequence))
        self._finish(operation, id_, sequence, manifests, added)
        for path in gone:
            self._live.pop(path, None)
            self._live_deletes.pop(path, None)
        self._live |= {one.path: Live(one, id_, sequence) for one in added}
        self._live_deletes |= {one.path: Live(one, id_, sequence) for one in deletes}
        self.snapshots[-1].alive = {path: self._alive[path] for path in self._live}

    def _write(
        self, entries: list[Entry], content: ManifestContent, snapshot_id: int, sequence: int
    ) -> ManifestFile:
        spec = self.shape.specs[entries[0].file.spec_id]
        # A column of the spec may be gone: then the schema of the time when it was there.
        schema_id = next(
            number
            for number in reversed(range(len(self.shape.columns)))
            if None not in partition_types(spec, self.shape.schema(number))
        )
        kind = ManifestKind(
            format_version=self.version,
            spec=spec,
            partition_types=partition_types(spec, self.shape.schema(schema_id)),
            spec_json=spec_fields_json(spec),
            schema_json=self.shape.schema_json(schema_id),
            schema_id=schema_id,
            content=content,
        )
        path = self._new_path("metadata/m", "avro")
        data, listed = write_manifest(kind, entries, path=path, snapshot_id=snapshot_id, codec="null")
        self.files[path] = data
        self._entries[path] = [
            replace(entry, sequence_number=sequence, file_sequence_number=sequence)
            if entry.sequence_number is None
            else entry
            for entry in entries
        ]
        return listed

    def _finish(
        self,
        operation: str,
        id_: int,
        sequence: int,
        manifests: list[ManifestFile],
        added: list[ContentFile],
    ) -> None:
        parent = self.snapshots[-1].id if self.snapshots else None
        path = self._new_path("metadata/snap", "avro")
        first_row_id = self.next_row_id if self.version > 2 else None
        data, listed, next_row_id = write_manifest_list(
            manifests,
            format_version=self.version,
            snapshot_id=id_,
            parent_snapshot_id=parent,
            sequence_number=sequence,
            next_row_id=first_row_id,
            codec="null",
        )
        self.next_row_id = next_row_id or 0
        self._manifests = list(listed)
        self.files[path] = data
        self.snapshots.append(
            Snapshot(
                id=id_,
                parent=parent,
                sequence_number=sequence,
                schema_id=len(self.shape.columns) - 1,
                operation=operation,
                manifest_list=path,
                manifests=listed,
                added=tuple(one.path for one in added),
                is_embedded=self.version == 1 and not self.is_plain and self.rng.random() < 0.2,
                first_row_id=first_row_id,
            )
        )


def _existing(entry: Entry) -> Entry:
    return replace(entry, status=Status.EXISTING)


def _removed(entry: Entry, snapshot_id: int) -> Entry:
    return replace(entry, status=Status.DELETED, snapshot_id=snapshot_id)
