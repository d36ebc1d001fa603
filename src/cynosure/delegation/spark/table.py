"""One table in a driver job: its name for Spark, Iceberg's procedures, what it is like now.

A maintainer must not break: names and instructions reach SQL as literals, whatever characters they hold; and
a table with another uuid than the job was told is not touched.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from cynosure.delegation.failures import JobFailed
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.rest import TableApi, ask_catalog

Value = str | int | float | bool | datetime | Mapping[str, str]


class Counted(Struct, frozen=True):
    """What a table has now, in its current state."""

    snapshots: int
    files: int
    bytes: int
    position_deletes: int
    equality_deletes: int
    deletion_vectors: int
    manifests: int
    snapshot_id: str

    @property
    def delete_files(self) -> int:
        """Of all kinds."""
        return self.position_deletes + self.equality_deletes + self.deletion_vectors


class SparkTable:
    """A table in the session of a job."""

    def __init__(self, link: DriverLink, parameters: Mapping[str, Any]) -> None:
        self._link = link
        self.namespace: tuple[str, ...] = tuple(parameters["namespace"])
        self.name: str = parameters["name"]
        self._uuid: str | None = parameters["table_uuid"]
        self._reach = link.catalog()
        self.catalog = link.open_catalog()

    @property
    def path(self) -> str:
        """Its name in SQL, without the catalog."""
        return ".".join(map(quote, (*self.namespace, self.name)))

    def load_metadata(self) -> dict[str, Any]:
        """Its metadata now; `JobFailed` when it is another table meanwhile."""

        async def load(api: TableApi) -> dict[str, Any]:
            return await api.load_table(self.namespace, self.name)

        metadata: dict[str, Any] = ask_catalog(self._reach, load)["metadata"]
        if self._uuid not in (None, metadata["table-uuid"]):
            raise JobFailed(
                "The table was replaced by another one meanwhile",
                code="TABLE_MISMATCH",
                status=409,
                found=metadata["table-uuid"],
                expected=self._uuid,
            )
        return metadata

    def count(self) -> Counted:
        """Count its files."""

        async def load(api: TableApi) -> dict[str, Any]:
            return await api.load_statistics(self.namespace, self.name, {"partitions": "0"})

        found = ask_catalog(self._reach, load)
        deletes = found["deletes"]["files"]
        return Counted(
            snapshots=found["snapshots"],
            files=found["data"]["files"],
            bytes=found["data"]["bytes"],
            position_deletes=deletes["position"]["files"],
            equality_deletes=deletes["equality"]["files"],
            deletion_vectors=deletes["deletion-vectors"]["files"],
            manifests=found["manifests"]["data"] + found["manifests"]["deletes"],
            snapshot_id=str(found.get("snapshot-id", "")),
        )

    def commit(self, *, requirements: list[dict[str, Any]], updates: list[dict[str, Any]]) -> None:
        """Commit to it, if the lease is ours and it is this very table."""
        self._link.lease()
        uuid = [{"type": "assert-table-uuid", "uuid": self._uuid}] if self._uuid else []

        async def send(api: TableApi) -> None:
            await api.commit(self.namespace, self.name, requirements=[*uuid, *requirements], updates=updates)

        ask_catalog(self._reach, send)

    def call(self, procedure: str, **arguments: Value | None) -> dict[str, Any]:
        """Call one of Iceberg's procedures, if the lease is ours; its first row."""
        given = {"table": self.path, **arguments}
        words = ", ".join(f"{name} => {literal(value)}" for name, value in given.items() if value is not None)
        self._link.lease()
        rows = self._link.spark.sql(f"CALL {self.catalog}.system.{procedure}({words})").collect()
        return rows[0].asDict() if rows else {}

    def count_distinct(self, metadata_table: str) -> tuple[int, int]:
        """Files that a metadata table names, each once, and their bytes together."""
        place = f"{self.catalog}.{self.path}.{metadata_table}"
        each = f"SELECT max(file_size_in_bytes) AS size FROM {place} GROUP BY file_path"  # noqa: S608 - our words
        statement = f"SELECT count(*), coalesce(sum(size), 0) FROM ({each})"  # noqa: S608 - the same
        files, size = self._link.spark.sql(statement).collect()[0]
        return int(files), int(size)

    def list_paths(self, metadata_table: str) -> set[str]:
        """The files that a metadata table names."""
        statement = f"SELECT file_path FROM {self.catalog}.{self.path}.{metadata_table}"  # noqa: S608 - our words
        return {row[0] for row in self._link.spark.sql(statement).collect()}


def quote(name: str) -> str:
    """A name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Value) -> str:
    """A value in SQL."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _:
            return f"map({', '.join(literal(each) for pair in value.items() for each in pair)})"


def compare(before: Counted, after: Counted) -> dict[str, int | str]:
    """What became of a table, for the result of a task."""
    return {
        "files_before": before.files,
        "files_after": after.files,
        "bytes_before": before.bytes,
        "bytes_after": after.bytes,
        "delete_files_before": before.delete_files,
        "delete_files_after": after.delete_files,
        "snapshots_before": before.snapshots,
        "snapshots_after": after.snapshots,
        "manifests_before": before.manifests,
        "manifests_after": after.manifests,
        "snapshot_id": after.snapshot_id,
    }
