"""Whether the history of a table that many append to is whole: read from its files, not asked of a server.

Must not break: it looks at every snapshot, not at the newest alone; and says what is wrong, all of it.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cynosure.common.errors import CynosureError
from cynosure.iceberg.manifests.manifest_list import read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest

_Added = tuple[str, int | None]
"""The name of a file, and the snapshot that added it."""


def data_file(location: str, name: str, rows: int = 1) -> dict[str, Any]:
    """A file of an unpartitioned table, as the append endpoint takes it; there need be none."""
    return {
        "content": "data",
        "file-path": f"{location}/data/{name}.parquet",
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": 10,
        "record-count": rows,
    }


def judge_history(metadata: Mapping[str, Any], told: Mapping[str, int]) -> list[str]:
    """What is wrong with a table whose files are local.

    `told`: each file that was appended, by its name without folder and ending, and the snapshot that its
    writer was told. There must be these and no others, each once, added by that snapshot.
    """
    problems: list[str] = []
    manifests: dict[str, list[_Added]] = {}
    parent: int | None = None
    sequence = 0
    seen: dict[str, int | None] = {}
    for snapshot in metadata.get("snapshots", ()):
        snapshot_id = snapshot["snapshot-id"]
        if snapshot.get("parent-snapshot-id") != parent:
            problems.append(f"snapshot {snapshot_id} does not follow {parent}")
        if snapshot["sequence-number"] <= sequence:
            problems.append(f"snapshot {snapshot_id} has the number {snapshot['sequence-number']}")
        parent, sequence = snapshot_id, snapshot["sequence-number"]
        try:
            files = _read_files(snapshot["manifest-list"], manifests)
        except (CynosureError, OSError) as error:
            problems.append(f"snapshot {snapshot_id} cannot be read: {error!r}")
            continue
        there = dict(files)
        if len(there) < len(files):
            twice = sorted(name for name, count in Counter(name for name, _ in files).items() if count > 1)
            problems += [f"{name} is several times in {snapshot_id}" for name in twice]
        problems += [f"{name} is not in {snapshot_id} any more" for name in sorted(seen.keys() - there)]
        problems += [
            f"{name} was added twice" for name, added in there.items() if seen.get(name, added) != added
        ]
        seen |= there
    if metadata.get("current-snapshot-id", -1) != (-1 if parent is None else parent):
        problems.append("the newest snapshot is not the current one")
    problems += [f"{name} is missing" for name in sorted(told.keys() - seen)]
    problems += [f"nobody appended {name}" for name in sorted(seen.keys() - told)]
    problems += [
        f"{name} was added by {seen[name]}, not by {snapshot_id} as was told"
        for name, snapshot_id in told.items()
        if seen.get(name, snapshot_id) != snapshot_id
    ]
    return problems


def _read_files(list_path: str, manifests: dict[str, list[_Added]]) -> list[_Added]:
    """The files of a snapshot. `manifests` are those read before; one is in many snapshots."""
    found: list[_Added] = []
    for listed in read_manifest_list(_read(list_path), path=list_path).manifests:
        if listed.path not in manifests:
            manifest = read_manifest(_read(listed.path), listed)
            manifests[listed.path] = [
                (Path(manifest.paths[row] or "").stem, manifest.snapshot_ids[row]) for row in manifest.live()
            ]
        found += manifests[listed.path]
    return found


def _read(uri: str) -> bytes:
    return Path(unquote(urlsplit(uri).path)).read_bytes()
