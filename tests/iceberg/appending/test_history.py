"""Random histories of one table: clients that saw older states add files, others delete and compact.

Whatever the order, the table ends with every file that was added and not removed, each once, and with numbers
that nothing else has (I82).
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyiceberg.manifest import read_manifest_list as read_list_by_pyiceberg

from cynosure.iceberg.appending.merging import merged_entries
from cynosure.iceberg.appending.own_manifests import (
    NotAnAppend,
    added_entries,
    carried,
    find_difference,
    find_fault,
    find_own,
    needs_rewrite,
)
from cynosure.iceberg.appending.request import find_refusal, read_append
from cynosure.iceberg.appending.snapshot import find_head, make_snapshot
from cynosure.iceberg.errors import RequirementFailed, StaleSnapshot
from cynosure.iceberg.manifests.content_file import Entry, Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.write_manifest import write_manifest_list
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import TableRequirement, check_requirements, decode_requirements
from cynosure.iceberg.updates import TableUpdate, apply_updates, decode_updates
from tests.iceberg.appending.samples import LOCATION, data_file, read, read_open, table, write
from tests.iceberg.manifests.samples import MemoryFiles
from tests.iceberg.samples import UUID, to_json

Commit = tuple[list[TableRequirement], list[TableUpdate]]


class Table:
    """A table with its files, and a catalog in front of it."""

    def __init__(self, version: int) -> None:
        self.metadata = table(version)
        self.files: dict[str, bytes] = {}
        self.rebased = 0

    def lines(self, metadata: TableMetadata) -> tuple[ManifestFile, ...]:
        head = find_head(metadata, "main")
        return () if head is None else self.read_list(head.manifest_list or "")

    def read_list(self, path: str) -> tuple[ManifestFile, ...]:
        return read_manifest_list(self.files[path], path=path).manifests

    def load(self, metadata: TableMetadata, listed: ManifestFile) -> Manifest:
        return read(metadata, self.files[listed.path], listed)

    def store(self, name: str, entries: list[Entry], snapshot_id: int) -> ManifestFile:
        data, listed = write(self.metadata, name, entries, snapshot_id)
        self.files[listed.path] = data
        return listed

    # What clients do.

    def prepare(self, base: TableMetadata, id_: int, operation: str, lines: list[ManifestFile]) -> Commit:
        """A commit that a client makes for the state that it saw."""
        version, path = base.format_version, f"{LOCATION}/metadata/snap-{id_}.avro"
        number = base.last_sequence_number + 1 if version > 1 else 0
        self.files[path], _, next_id = write_manifest_list(
            lines,
            format_version=version,
            snapshot_id=id_,
            parent_snapshot_id=base.current_snapshot_id,
            sequence_number=number,
            next_row_id=base.next_row_id,
        )
        document: dict[str, Any] = {
            "snapshot-id": id_,
            "timestamp-ms": base.last_updated_ms + 1,
            "manifest-list": path,
            "summary": {"operation": operation},
            "schema-id": 0,
        }
        if base.current_snapshot_id is not None:
            document["parent-snapshot-id"] = base.current_snapshot_id
        if version > 1:
            document["sequence-number"] = number
        if version > 2:
            first = base.next_row_id or 0
            document |= {"first-row-id": first, "added-rows": (next_id or 0) - first}
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_}
        is_at = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": base.current_snapshot_id}
        return (
            decode_requirements(to_json([{"type": "assert-table-uuid", "uuid": UUID}, is_at])),
            decode_updates(to_json([{"action": "add-snapshot", "snapshot": document}, ref])),
        )

    def append(self, base: TableMetadata, id_: int, count: int, *, is_merging: bool) -> Commit:
        files = [data_file(f"{id_}-{at}") for at in range(count)]
        new = self.store(f"m{id_}", [Entry(Status.ADDED, id_, None, None, one) for one in files], id_)
        kept = [*self.lines(base)]
        if is_merging:
            loaded = [self.load(base, one) for one in (new, *kept)]
            new, kept = self.store(f"merged{id_}", [*merged_entries(loaded, id_)], id_), []
        return self.prepare(base, id_, "append", [new, *kept])

    def rewrite(self, id_: int, paths: set[str]) -> Commit:
        """Remove files, as a delete or a compaction does."""
        base = self.metadata
        entries = []
        for listed in self.lines(base):
            for one in self.load(base, listed).entries():
                if one.status is not Status.DELETED:
                    status = Status.DELETED if one.file.path in paths else Status.EXISTING
                    entries.append(
                        replace(one, status=status, snapshot_id=id_)
                        if status is Status.DELETED
                        else replace(one, status=status)
                    )
        return self.prepare(base, id_, "delete", [self.store(f"del{id_}", entries, id_)])

    # What the catalog does.

    def commit(self, commit: Commit) -> None:
        requirements, updates = commit
        base = self.metadata
        now_ms = base.last_updated_ms + 1
        try:
            check_requirements(base, requirements)
            self.metadata = apply_updates(base, updates, now_ms=now_ms)
        except (RequirementFailed, StaleSnapshot):
            self.metadata = self._rebase(requirements, updates, now_ms)
            self.rebased += 1

    def _rebase(
        self, requirements: list[TableRequirement], updates: list[TableUpdate], now_ms: int
    ) -> TableMetadata:
        base = self.metadata
        append = read_append(requirements, updates)
        assert append is not None
        check_requirements(base, append.others)
        assert find_refusal(append, base) is None
        snapshot = append.snapshot.value
        id_ = snapshot.snapshot_id
        listed = self.read_list(snapshot.manifest_list or "")
        found = find_own(listed, id_, spec_ids={0})
        assert not isinstance(found, NotAnAppend)
        parent = base.find_snapshot(snapshot.parent_snapshot_id or 0)
        parents = () if parent is None else self.read_list(parent.manifest_list or "")
        assert find_difference(listed, parents, id_) is None
        own = []
        for one in found:
            manifest = read_open(base, self.files[one.path], one)
            assert find_fault(manifest, id_) is None
            if needs_rewrite(manifest, id_, format_version=base.format_version):
                own.append(self.store(f"own{id_}", added_entries(manifest, id_), id_))
            else:
                own.append(carried(one))
        made = make_snapshot(
            base,
            branch="main",
            snapshot_id=id_,
            own=own,
            kept=self.lines(base),
            list_path=f"{LOCATION}/metadata/rebased-{id_}.avro",
            summary={},
            template=append.snapshot.json,
            now_ms=now_ms,
        )
        self.files[made.list_path] = made.list_data
        return apply_updates(base, made.as_updates(base, "main"), now_ms=now_ms)

    def live(self) -> list[Entry]:
        manifests = [self.load(self.metadata, one) for one in self.lines(self.metadata)]
        return [one.entry(row) for one in manifests for row in one.live()]


STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 3), st.sampled_from(["fast", "merge", "fast", "remove"])),
    min_size=1,
    max_size=8,
)
"""How many commits ago the client read the table, how many files it adds, and how."""


@pytest.mark.parametrize("version", [1, 2, 3])
@given(steps=STEPS)
@settings(max_examples=40, deadline=None)
def test_every_file_is_there_once(version: int, steps: list[tuple[int, int, str]]) -> None:
    one = Table(version)
    history = [one.metadata]
    expected: dict[str, int] = {}
    for id_, (age, count, kind) in enumerate(steps, 1):
        if kind == "remove":
            gone = set(sorted(expected)[:count])
            one.commit(one.rewrite(id_, gone))
            expected = {path: number for path, number in expected.items() if path not in gone}
        else:
            seen = history[max(0, len(history) - 1 - age)]
            one.commit(one.append(seen, id_, count, is_merging=kind == "merge"))
            number = one.metadata.last_sequence_number
            expected |= {data_file(f"{id_}-{at}").path: number for at in range(count)}
        assert one.metadata.current_snapshot_id == id_
        history.append(one.metadata)
    live = one.live()
    assert sorted(entry.file.path for entry in live) == sorted(expected)
    # A file's number is that of the commit that added it, wherever it came to stand: deletes of others that
    # were committed before do not apply to it.
    assert {entry.file.path: entry.sequence_number for entry in live} == expected
    assert all(f"/{entry.snapshot_id}-" in entry.file.path for entry in live)
    _check_rows(one.metadata, live)
    _check_chain(one.metadata, len(steps))
    _check_by_pyiceberg(one, expected)


def _check_rows(metadata: TableMetadata, live: list[Entry]) -> None:
    if metadata.format_version < 3:
        return
    ids = [
        row
        for entry in live
        for row in range(
            entry.file.first_row_id or 0, (entry.file.first_row_id or 0) + entry.file.record_count
        )
    ]
    assert all(entry.file.first_row_id is not None for entry in live)
    assert len({*ids}) == len(ids)
    assert not ids or max(ids) < (metadata.next_row_id or 0)


def _check_chain(metadata: TableMetadata, count: int) -> None:
    snapshots = [json.loads(document) for _, document in metadata.snapshots]
    assert [one.get("parent-snapshot-id") for one in snapshots] == [None, *range(1, count)]
    numbers = [one.get("sequence-number", 0) for one in snapshots]
    assert numbers == ([*range(1, count + 1)] if metadata.format_version > 1 else [0] * count)


def _check_by_pyiceberg(one: Table, expected: dict[str, int]) -> None:
    head = find_head(one.metadata, "main")
    assert head is not None
    files = MemoryFiles(one.files)
    found = {
        entry.data_file.file_path: entry.sequence_number
        for listed in read_list_by_pyiceberg(files.new_input(head.manifest_list or ""))
        for entry in listed.fetch_manifest_entry(files)
    }
    assert found == expected


def test_clients_that_saw_the_same_state_are_moved() -> None:
    one = Table(2)
    base = one.metadata
    for id_ in (1, 2, 3):
        one.commit(one.append(base, id_, 2, is_merging=id_ == 2))
    assert one.rebased == 2
    assert len(one.live()) == 6
