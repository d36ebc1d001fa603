"""Which files a table needs, found out without Spark and without our server's code: by PyIceberg's readers.

Over all snapshots, so over all branches and tags too: lists, manifests, data, deletes, statistics, and the
metadata files that the log names.
"""

from dataclasses import dataclass
from typing import Any

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import read_manifest_list

from tests.delegation.spark.world import Lake


@dataclass(frozen=True)
class State:
    """A table at one time."""

    needed: frozenset[str]
    """All files of all snapshots."""
    there: frozenset[str]
    """What lies below its location."""
    metadata: dict[str, Any]

    @property
    def missing(self) -> frozenset[str]:
        return self.needed - self.there


def look(lake: Lake, path: tuple[str, ...]) -> State:
    loaded = lake.load(path)
    metadata = loaded["metadata"]
    io = open_files(lake)
    needed = {
        loaded["metadata-location"],
        *(each["metadata-file"] for each in metadata.get("metadata-log", [])),
    }
    for each in (*metadata.get("statistics", []), *metadata.get("partition-statistics", [])):
        needed.add(each["statistics-path"])
    for snapshot in metadata.get("snapshots", []):
        needed.add(snapshot["manifest-list"])
        for manifest in read_manifest_list(io.new_input(snapshot["manifest-list"])):
            needed.add(manifest.manifest_path)
            needed |= {each.data_file.file_path for each in manifest.fetch_manifest_entry(io)}
    there = lake.list_files(metadata["location"])
    return State(frozenset(map(plain, needed)), frozenset(map(plain, there)), metadata)


def plain(location: str) -> str:
    """`file:/a` and `file:///a` are one."""
    return (
        "file:///" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location
    )


def open_files(lake: Lake) -> FileIO:
    store = lake.store
    if store is None:
        return load_file_io({"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
    return load_file_io(
        {
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            "s3.endpoint": store.endpoint,
            "s3.region": store.region,
            "s3.access-key-id": store.access_key_id,
            "s3.secret-access-key": store.secret_access_key,
            "s3.path-style-access": "true",
        }
    )


def assert_only_dead_files_went(before: State, after: State) -> frozenset[str]:
    """What went. All that is needed is there, and nothing went that nothing says was the table's."""
    assert not after.missing, "a file that a snapshot needs is gone"
    went = before.there - after.there
    assert not went & after.needed
    assert went <= before.needed, "a file that never was the table's is gone"
    return went
