"""Plans of one scan: through our endpoints, and by PyIceberg from the same files."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import DataScan, FileScanTask, IncrementalAppendScan, Table
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadataUtil

from tests.iceberg.manifests.samples import MemoryFiles

REQUIRED = ("spec-id", "content", "file-path", "file-format", "file-size-in-bytes", "record-count")


@dataclass(frozen=True)
class Task:
    """A data file of a plan."""

    path: str
    deletes: frozenset[str]
    residual: Any = True
    record_count: int | None = None


Plan = dict[str, Task]


async def plan_by_us(client: httpx.AsyncClient, table: str, request: dict[str, Any]) -> Plan:
    """The whole plan, page by page."""
    answer = await client.post(f"{table}/plan", json=request)
    assert answer.status_code == 200, (answer.text, request)
    body = answer.json()
    assert body["status"] == "completed"
    assert body["plan-id"]
    found = _read(body)
    waiting = [*body.get("plan-tasks", ())]
    while waiting:
        page = await client.post(f"{table}/tasks", json={"plan-task": waiting.pop(0)})
        assert page.status_code == 200, page.text
        tasks = _read(page.json())
        assert not found.keys() & tasks.keys(), "a file is in two pages"
        found |= tasks
        waiting += page.json().get("plan-tasks", ())
    return found


def _read(body: dict[str, Any]) -> Plan:
    deletes = body.get("delete-files", [])
    found: Plan = {}
    used: set[int] = set()
    for one in body.get("file-scan-tasks", []):
        file, references = one["data-file"], one.get("delete-file-references", [])
        assert [name for name in REQUIRED if name not in file] == []
        assert file["file-path"] not in found, "a file is in one page twice"
        assert len(set(references)) == len(references)
        used |= {*references}
        found[file["file-path"]] = Task(
            file["file-path"],
            frozenset(deletes[at]["file-path"] for at in references),
            one.get("residual-filter", True),
            file["record-count"],
        )
    assert used == {*range(len(deletes))}, "a delete file that no task refers to"
    return found


def open_by_pyiceberg(metadata: bytes, files: dict[str, bytes], schema_id: int | None = None) -> Table:
    """The table as PyIceberg sees it; with another schema where a scan uses an older one."""
    parsed = TableMetadataUtil.parse_raw(metadata.decode())
    if schema_id is not None:
        parsed = parsed.model_copy(update={"current_schema_id": schema_id})
    return Table(("db", "t"), parsed, "memory://metadata.json", MemoryFiles(files), None)  # type: ignore[arg-type]


def plan_by_pyiceberg(scan: DataScan | IncrementalAppendScan) -> Plan | None:
    """Its own local plan.

    It computes the residual of every file, and fails where it must compare a partition value that is null.
    Then the files and delete files come from the parts that its plan is made of, in the same order; of an
    incremental scan these parts cannot be had, and there is no plan.
    """
    try:
        return _from_tasks(scan.plan_files())
    except TypeError:
        if not isinstance(scan, DataScan):
            return None
    entries = [entry for some in scan._plan_manifest_entries() for entry in some]
    index = DeleteFileIndex()
    for entry in entries:
        if entry.data_file.content == DataFileContent.POSITION_DELETES:
            index.add_delete_file(entry, partition_key=entry.data_file.partition)
    found = {}
    for entry in entries:
        file = entry.data_file
        if file.content == DataFileContent.DATA:
            deletes = index.for_data_file(entry.sequence_number or 0, file, partition_key=file.partition)
            found[file.file_path] = Task(
                file.file_path, frozenset(one.file_path for one in deletes), residual=None
            )
    return found


def _from_tasks(tasks: Iterable[FileScanTask]) -> Plan:
    return {
        one.file.file_path: Task(
            one.file.file_path,
            frozenset(each.file_path for each in one.delete_files),
            one.residual == AlwaysTrue() or one.residual,
        )
        for one in tasks
    }
