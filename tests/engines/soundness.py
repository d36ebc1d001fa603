"""Whether a table is whole, whoever wrote it: judged from its metadata and its files, not by a client's word.

A maintainer must not break: every snapshot counts, not only the current one.
"""

from collections import Counter

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot


def find_missing(table: Table) -> list[str]:
    """Files that a snapshot of the table needs and that are gone."""
    missing: set[str] = set()
    known: set[str] = set()
    for snapshot in table.snapshots():
        if not table.io.new_input(snapshot.manifest_list).exists():
            missing.add(snapshot.manifest_list)
            continue
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in known:
                known.add(manifest.manifest_path)
                missing.update(_find_missing(table.io, manifest))
    return sorted(missing)


def _find_missing(io: FileIO, manifest: ManifestFile) -> list[str]:
    if not io.new_input(manifest.manifest_path).exists():
        return [manifest.manifest_path]
    paths = [entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io)]
    return [path for path in paths if not io.new_input(path).exists()]


def find_damage(table: Table) -> list[str]:
    """What is wrong: files that are gone, a history that is not a straight line, files that came twice."""
    if missing := find_missing(table):
        return [f"missing: {path}" for path in missing]
    damage: list[str] = []
    snapshots = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    ids: list[int | None] = [snapshot.snapshot_id for snapshot in snapshots]
    if [snapshot.parent_snapshot_id for snapshot in snapshots] != [None, *ids][: len(ids)]:
        damage.append("the snapshots do not follow each other")
    if [snapshot.sequence_number for snapshot in snapshots] != list(range(1, len(ids) + 1)):
        damage.append("a sequence number is left out, or there twice")
    if [entry.snapshot_id for entry in table.history()] != ids:
        damage.append("the history does not name each snapshot once")
    current = table.current_snapshot()
    if [current.snapshot_id if current else None] != ids[-1:] and ids:
        damage.append("the last snapshot is not the current one")
    added = Counter(file.file_path for snapshot in snapshots for file in added_files(table, snapshot))
    damage.extend(f"added {times} times: {path}" for path, times in added.items() if times > 1)
    return damage


def assert_sound(table: Table) -> None:
    """Nothing is wrong with the table, and its rows can be read."""
    damage = find_damage(table)
    assert not damage, f"{table.name()}: {damage}"
    table.scan().to_arrow()


def added_files(table: Table, snapshot: Snapshot) -> list[DataFile]:
    """The files that this snapshot brought."""
    return [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.snapshot_id == snapshot.snapshot_id
    ]
