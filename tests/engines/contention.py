"""Many clients that append to one table at once, and the judge of what they leave behind.

Tables here allow no retry (`commit.retry.num-retries` = 0), so a conflict that the server answers to an
append is an exception in the client that met it.

A maintainer must not break: every row has an id that nobody else writes, so a row that is lost and one that
is there twice are both seen; and the judge reads metadata, manifests and files, not a client's word.
"""

import os
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from cynosure.testing.catalog_server import RestCatalog, ServedCatalog
from tests.engines.pyiceberg_client import connect
from tests.engines.soundness import find_damage, find_missing

WRITERS: Final = 8
ROUNDS: Final = 10 if os.environ.get("CYNOSURE_SOAK") else 3
"""Appends of each writer."""
ROWS: Final = 3
"""Of each append."""
TAKEN_BY_ONE: Final = 1_000_000
"""Ids that one writer has for itself."""
SCHEMA: Final = Schema(
    NestedField(1, "id", LongType(), required=False), NestedField(2, "data", StringType(), required=False)
)
ARROW: Final = pa.schema([pa.field("id", pa.int64()), pa.field("data", pa.string())])
NO_RETRY: Final = {"commit.retry.num-retries": "0"}
REBASED: Final = {**NO_RETRY, "cynosure.commit.rebase-appends": "true"}
NAME: Final = ("ns", "t")

Task = Callable[[threading.Barrier], None]
"""What a thread does. It waits at the barrier when it is ready, so that all begin together."""


def ids_of(writer: int, number: int) -> range:
    """The ids of one append."""
    first = (writer + 1) * TAKEN_BY_ONE + number * ROWS
    return range(first, first + ROWS)


def all_ids(writers: Iterable[int], rounds: int = ROUNDS) -> list[int]:
    """The ids that these writers append."""
    return [each for writer in writers for number in range(rounds) for each in ids_of(writer, number)]


def rows(ids: Sequence[int], data: str = "new") -> pa.Table:
    return pa.table({"id": list(ids), "data": [data] * len(ids)}, schema=ARROW)


def create_table(rest: RestCatalog, version: int, properties: dict[str, str]) -> None:
    """An empty table `ns.t`."""
    with connect(rest) as catalog:
        catalog.create_namespace(NAME[0])
        catalog.create_table(NAME, SCHEMA, properties={"format-version": str(version), **properties})


def run_at_once(tasks: Sequence[Task]) -> list[BaseException | None]:
    """Run all tasks in threads; how each failed."""
    start = threading.Barrier(len(tasks))
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(task, start) for task in tasks]
        return [each.exception() for each in running]


def write_with_pyiceberg(rest: RestCatalog, writer: int, rounds: int = ROUNDS) -> Task:
    """A client of its own that loads the table once and then appends, each time on what it knows by then."""

    def write(start: threading.Barrier) -> None:
        with connect(rest) as catalog:
            table = catalog.load_table(NAME)
            start.wait(timeout=60)
            for number in range(rounds):
                table.append(rows(ids_of(writer, number)))

    return write


class Endpoint:
    """The append endpoint as a program uses it that has written its files already."""

    def __init__(self, lake: ServedCatalog) -> None:
        self._url = f"{lake.root}/cynosure/v1/{lake.name}/namespaces/{NAME[0]}/tables/{NAME[1]}/append"
        self._login = lake.login
        self.told: set[int] = set()
        """The snapshots that brought what was sent; files that were sent at once may have come in one."""

    def write(self, files: Sequence[dict[str, Any]]) -> Task:
        """A client that sends these files, one after another."""

        def write(start: threading.Barrier) -> None:
            with httpx.Client(trust_env=False, timeout=60, auth=self._login) as http:
                start.wait(timeout=60)
                for file in files:
                    key = {"Idempotency-Key": str(uuid.uuid4())}
                    answer = http.post(self._url, json={"data-files": [file]}, headers=key)
                    assert answer.status_code == 200, answer.text
                    told = answer.json()
                    assert (told["added-files"], told["added-records"]) == (1, ROWS)
                    self.told.add(told["snapshot-id"])

        return write


def write_files(catalog: Catalog, writer: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Data files with the rows of a writer, in the protocol's JSON. Nobody refers to them yet."""
    table = catalog.load_table(NAME)
    made: list[dict[str, Any]] = []
    for number in range(rounds):
        ids = ids_of(writer, number)
        path = f"{table.location()}/data/{uuid.uuid4()}.parquet"
        with table.io.new_output(path).create() as out:
            pq.write_table(_with_field_ids(rows(ids)), out)
        made.append(
            {
                "content": "data",
                "file-path": path,
                "file-format": "parquet",
                "spec-id": 0,
                "partition": [],
                "record-count": ROWS,
                "file-size-in-bytes": len(table.io.new_input(path)),
                "value-counts": {"keys": [1, 2], "values": [ROWS, ROWS]},
                "null-value-counts": {"keys": [1, 2], "values": [0, 0]},
                "lower-bounds": {"keys": [1, 2], "values": [ids[0], "new"]},
                "upper-bounds": {"keys": [1, 2], "values": [ids[-1], "new"]},
            }
        )
    return made


def _with_field_ids(data: pa.Table) -> pa.Table:
    fields = [
        field.with_metadata({"PARQUET:field_id": str(number)}) for number, field in enumerate(data.schema, 1)
    ]
    return data.cast(pa.schema(fields))


def assert_whole(table: Table, ids: Sequence[int]) -> None:
    """After appends alone: all rows once, a straight history, every file there, all numbers right."""
    damage = find_damage(table)
    assert not damage, damage
    assert_rows(table, dict.fromkeys(ids, "new"))
    assert_numbered(table)
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert summary["total-records"] == str(len(ids))
    assert summary["total-data-files"] == str(len(live_files(table)))


def assert_rows(table: Table, expected: dict[int, str]) -> None:
    """Exactly these rows, each once."""
    found = table.scan().to_arrow()
    pairs = Counter(zip(found["id"].to_pylist(), found["data"].to_pylist(), strict=True))
    assert pairs == Counter(expected.items())


def assert_changed_soundly(table: Table) -> None:
    """After other changes too, and after snapshots expired: what is left is whole and in order."""
    assert find_missing(table) == []
    files = Counter(live_files(table))
    assert {path for path, times in files.items() if times > 1} == set()
    chain = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    numbers = [snapshot.sequence_number for snapshot in chain]
    assert len(set(numbers)) == len(numbers)
    for older, newer in pairwise(chain):
        if older.sequence_number == (newer.sequence_number or 0) - 1:
            assert newer.parent_snapshot_id == older.snapshot_id
    log = table.history()
    assert [entry.timestamp_ms for entry in log] == sorted(entry.timestamp_ms for entry in log)
    assert log[-1].snapshot_id == chain[-1].snapshot_id == table.metadata.current_snapshot_id
    assert_numbered(table)


def live_files(table: Table) -> list[str]:
    """The data files of the current snapshot, as often as it lists them."""
    snapshot = table.current_snapshot()
    assert snapshot
    return [
        entry.data_file.file_path
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]


def assert_numbered(table: Table) -> None:
    """Each appended file has the sequence number of the snapshot that brought it."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    current = table.current_snapshot()
    assert current
    for manifest in current.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.snapshot_id in by_id and manifest.content == ManifestContent.DATA:
                # Not of rewritten files, whose data is as old as what they were made from.
                brought = by_id[entry.snapshot_id]
                if brought.summary and brought.summary.operation.value == "append":
                    assert entry.sequence_number == brought.sequence_number, entry.data_file.file_path
            assert (manifest.min_sequence_number or 0) <= (entry.sequence_number or 0)
        assert (manifest.sequence_number or 0) <= (current.sequence_number or 0)


def assert_rows_are_numbered(metadata: dict[str, Any]) -> None:
    """Version 3: every snapshot numbers rows from where the one before ended, and the table goes on there."""
    next_id = 0
    for snapshot in sorted(metadata["snapshots"], key=lambda each: int(each["sequence-number"])):
        assert snapshot["first-row-id"] == next_id, snapshot
        next_id += snapshot["added-rows"]
    assert metadata["next-row-id"] == next_id


def fetch_metadata(lake: ServedCatalog) -> dict[str, Any]:
    """The table as the server tells it."""
    with httpx.Client(trust_env=False, auth=lake.login) as http:
        answer = http.get(f"{lake.url}/namespaces/{NAME[0]}/tables/{NAME[1]}").raise_for_status()
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata
