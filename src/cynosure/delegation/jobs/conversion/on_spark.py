"""FORMAT_CONVERSION, in the driver: a newer format version, or Parquet files that become a table.

Footers are read twice: first to know the columns, before anything is made; then for what manifests hold,
which needs the ids of the table's columns.

A maintainer must not break: no file is in the table twice, however often this is repeated; no data are
copied, moved or deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import NotFound
from cynosure.delegation.jobs.conversion.footers import Refused, Shape, TableForm, measure, read_shapes
from cynosure.delegation.jobs.conversion.found_files import FoundFile, infer_types, refuse, sort_out
from cynosure.delegation.jobs.conversion.new_schema import (
    Columns,
    map_names,
    merge,
    number,
    read_columns,
    same_shape,
)
from cynosure.delegation.jobs.conversion.reach_files import list_below
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.rest import TableApi, ask_catalog
from cynosure.delegation.spark.table import SparkTable
from cynosure.iceberg.partitioning import FIRST_FIELD_ID
from cynosure.iceberg.shaping.name_mapping import NAME_MAPPING
from cynosure.iceberg.types import encode_field, parse_fields

T = TypeVar("T")

_AT_ONCE: Final = 20_000
"""Files for which credentials are asked once."""
_PER_APPEND: Final = 2_000
_PER_SLICE: Final = 200
_THREADS: Final = 8
_FORMAT_VERSION: Final = 2


def upgrade(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Raise the format version: metadata only."""
    table = SparkTable(link, parameters)
    version: int = parameters["format_version"]
    if table.load_metadata()["format-version"] < version:
        table.commit(
            requirements=[], updates=[{"action": "upgrade-format-version", "format-version": version}]
        )
    return {}


def adopt(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Make the Parquet files below a place part of the table that lies there."""
    return _Adoption(link, parameters).run()


class _Adoption:
    """One directory on its way."""

    def __init__(self, link: DriverLink, parameters: dict[str, Any]) -> None:
        self._link = link
        self._reach = link.catalog()
        self._namespace = tuple(parameters["namespace"])
        self._name: str = parameters["name"]
        self._place: str = parameters["source"].rstrip("/")
        self._exists: bool = parameters["exists"]
        self._staged: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """All of it; what was counted."""
        properties = self._load_credentials()
        files = sort_out(list_below(self._place, properties), is_table=self._exists)
        self._link.progress(TaskProgress("reading columns", 0, len(files)))
        columns = self._read_columns(files)
        metadata = self._load()["metadata"] if self._exists else self._create(files, columns)
        form = self._check(metadata, files, columns)
        known = self._list_known() if self._exists else set()
        new = [each for each in files if f"{self._place}/{each.path}" not in known]
        self._append(new, form, metadata["table-uuid"])
        return {
            "files_found": len(files),
            "files_added": len(new),
            "bytes_added": sum(each.size_bytes for each in new),
            "partition_columns": [name for name, _ in files[0].partition],
            "table_uuid": metadata["table-uuid"],
            "format_version": metadata["format-version"],
        }

    # What the catalog says and gives.

    def _ask(self, work: Callable[[TableApi], Any]) -> Any:
        return ask_catalog(self._reach, work)

    def _load(self) -> dict[str, Any]:
        loaded: dict[str, Any] = self._ask(lambda api: api.load_with_credentials(self._namespace, self._name))
        return loaded

    def _load_credentials(self) -> dict[str, str]:
        """Good for a while yet. Before there is a table its place is reserved, which opens it too."""
        if self._exists:
            return self._link.credentials().properties
        body = {"name": self._name, "location": self._place, "schema": _make_schema(())}
        try:
            self._staged = self._ask(lambda api: api.stage(self._namespace, body))
        except NotFound as error:
            raise refuse("There is no such namespace", path="", fix="Create it first.") from error
        staged_at = self._staged["metadata"]["location"].rstrip("/")
        if staged_at != self._place:
            raise refuse("The catalog does not let a table be there", path="", location=staged_at)
        given: dict[str, str] = dict(self._staged.get("config", {}))
        for each in self._staged.get("storage-credentials") or []:
            given |= each["config"]
        return given

    # Columns.

    def _read_columns(self, files: Sequence[FoundFile]) -> Columns:
        """The columns of all files together; refused before anything is made."""
        found: Columns = {}
        shapes: dict[bytes, str] = {}
        for some in _cut(files, _AT_ONCE):
            read = partial(read_shapes, place=self._place, properties=self._load_credentials())
            for each in self._map(some, read):
                if isinstance(each, Refused):
                    raise refuse("A file cannot be part of a table", path=each.path, reason=each.reason)
                if isinstance(each, Shape):
                    shapes.setdefault(each.columns, each.example)
        for encoded, example in sorted(shapes.items(), key=lambda pair: pair[1]):
            merge(found, read_columns(pa.ipc.read_schema(pa.py_buffer(encoded)), example), example)
        for name, type_ in infer_types(files).items():
            found.setdefault(name, type_)
        return found

    def _create(self, files: Sequence[FoundFile], columns: Columns) -> dict[str, Any]:
        """Create the table that was promised, in one commit."""
        fields = number(columns)
        ids = {each.name: each.id for each in fields}
        spec = [
            {
                "name": name,
                "transform": "identity",
                "source-id": ids[name],
                "field-id": FIRST_FIELD_ID + at,
            }
            for at, (name, _) in enumerate(files[0].partition)
        ]
        properties = {
            **self._staged["metadata"].get("properties", {}),
            NAME_MAPPING: msgspec.json.encode(map_names(fields)).decode(),
        }
        updates: list[dict[str, Any]] = [
            {"action": "assign-uuid", "uuid": self._staged["metadata"]["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": _FORMAT_VERSION},
            {"action": "add-schema", "schema": _make_schema([encode_field(each) for each in fields])},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": spec}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": self._place},
            {"action": "set-properties", "updates": properties},
        ]
        self._link.lease()
        create = [{"type": "assert-create"}]
        self._ask(lambda api: api.commit(self._namespace, self._name, requirements=create, updates=updates))
        self._exists = True
        made: dict[str, Any] = self._load()["metadata"]
        return made

    def _check(self, metadata: Mapping[str, Any], files: Sequence[FoundFile], columns: Columns) -> TableForm:
        """The table's columns are those of the files, and its partitions those of the paths."""
        schema = next(
            each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]
        )
        spec = next(
            each for each in metadata["partition-specs"] if each["spec-id"] == metadata["default-spec-id"]
        )
        fields = {each.name: each for each in parse_fields(schema["fields"])}
        for name, type_ in columns.items():
            if name not in fields or not same_shape(type_, fields[name].type):
                raise refuse("The table has no such column", path="", column=name, type=str(type_))
        named = {each.id: each.name for each in fields.values()}
        by = [(named.get(each.get("source-id", 0)), each["transform"]) for each in spec["fields"]]
        if by != [(name, "identity") for name, _ in files[0].partition]:
            raise refuse("The table is partitioned in another way than the directory", path="", found=str(by))
        properties: dict[str, str] = metadata.get("properties", {})
        if NAME_MAPPING not in properties:
            mapping = msgspec.json.encode(map_names(fields.values())).decode()
            update = {"action": "set-properties", "updates": {NAME_MAPPING: mapping}}
            same = [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}]
            self._link.lease()
            self._ask(
                lambda api: api.commit(self._namespace, self._name, requirements=same, updates=[update])
            )
        return TableForm(msgspec.json.encode(schema), msgspec.json.encode(spec), properties)

    # Files.

    def _list_known(self) -> set[str]:
        """What is in the table already: of an attempt before, say."""
        table = SparkTable(self._link, {"namespace": self._namespace, "name": self._name, "table_uuid": None})
        return table.list_paths("files")

    def _append(self, files: Sequence[FoundFile], form: TableForm, table_uuid: str) -> None:
        done = 0
        for some in _cut(files, _AT_ONCE):
            work = partial(measure, place=self._place, properties=self._load_credentials(), form=form)
            documents: list[dict[str, Any]] = []
            for each in self._map(some, work):
                if isinstance(each, Refused):
                    raise refuse("A file cannot be part of the table", path=each.path, reason=each.reason)
                documents.append(msgspec.json.decode(each))
            for batch in _cut(documents, _PER_APPEND):
                self._link.lease()
                self._send(list(batch), table_uuid)
                done += len(batch)
                self._link.progress(TaskProgress("adding files", done, len(files)))

    def _send(self, documents: list[dict[str, Any]], table_uuid: str) -> None:
        self._ask(
            lambda api: api.append(
                self._namespace,
                self._name,
                data_files=documents,
                table_uuid=table_uuid,
                summary={"cynosure.task-id": self._link.task_id},
            )
        )

    def _map(self, files: Sequence[FoundFile], work: Callable[[Iterable[FoundFile]], Iterator[T]]) -> list[T]:
        """Do it for all files, on executors; Spark Connect has no such thing, so in threads of the driver."""
        slices = max(1, len(files) // _PER_SLICE)
        if self._link.is_classic:
            context = self._link.spark.sparkContext
            return context.parallelize(files, slices).mapPartitions(work).collect()
        with ThreadPoolExecutor(_THREADS) as threads:
            parts = threads.map(lambda part: list(work(part)), _cut(files, _PER_SLICE))
            return [each for part in parts for each in part]


def _make_schema(fields: Iterable[Any]) -> dict[str, Any]:
    return {"type": "struct", "schema-id": 0, "fields": list(fields)}


def _cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
