"""What the native leaf reads: one table at one snapshot, as metadata of Iceberg made for this very read.

The coordinator has the table's metadata already, and credentials for its files. So Spark gets both, narrowed:
nobody in Spark asks the catalog, and no token of a user is there.

    snapshots, refs     the one that is read, as the current one
    schemas             the one that it is read with, as the current one, without columns that nobody can read
    partition specs     all, and an empty one as default: Iceberg then never takes a filter for done, so that
                        Spark looks at every row itself; and old schemas fit, whatever the table is split by
    properties          none: some name classes to load

A maintainer must not break: what is not listed here does not get to Spark.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured
from cynosure.iceberg.schema import decode_schema
from cynosure.query.arrow_types import find_unsupported
from cynosure.query.engine import FragmentReport, OnFragment, Relation
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Mask, ScanTask
from cynosure.query.spark.native_limits import find_native

_KEPT: Final = (
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "last-partition-id",
    "next-row-id",
)
_UNSORTED: Final = {"order-id": 0, "fields": []}
_LEAST_LIFE_MS: Final = 10 * 60 * 1000
"""Credentials that end sooner are renewed first: a running scan cannot get others."""
_LEAST_PARTITION_ID: Final = 999


CREDENTIALS: Final = "credentials"
"""What a driver asks for, with the name of a view."""


class NativeTable(Struct, frozen=True):
    """All that the leaf is told but how files are reached."""

    metadata: str
    schema: bytes
    """To read with, as scan tasks have it."""
    columns: tuple[int, ...]
    row_filter: bytes
    predicates: bytes
    masks: tuple[Mask, ...]
    salt: bytes
    places: tuple[str, ...]
    file_roots: tuple[str, ...]

    def __repr__(self) -> str:
        return f"NativeTable({len(self.columns)} columns, …)"


class NativeAnswers:
    """Answers what the driver of one statement asks."""

    def __init__(self, relations: Sequence[Relation], clock: Clock) -> None:
        self._relations = {each.view: each for each in relations}
        self._clock = clock

    async def answer(self, what: str, value: Any) -> Any:
        """Credentials for the files of a view, which live for a while yet."""
        relation = self._relations.get(value) if what == CREDENTIALS else None
        task = next(iter(relation.fragments), None) if relation is not None else None
        if relation is None or not isinstance(task, ScanTask):
            raise Misconfigured("A driver asks what nobody can answer", what=what)
        credentials = task.credentials
        left_ms = credentials.expires_ms - self._clock.now_us() // 1000
        if credentials.expires_ms and left_ms < _LEAST_LIFE_MS and relation.renew is not None:
            credentials = await relation.renew()
        return msgspec.to_builtins(credentials)


def without_scans(relations: Sequence[Relation]) -> tuple[Relation, ...]:
    """What is left for the broker: rows that Iceberg's reader does not give."""
    return tuple(
        each if find_native(each) is None else msgspec.structs.replace(each, fragments=())
        for each in relations
    )


def report_scans(relations: Sequence[Relation], elapsed_ms: int, on_fragment: OnFragment) -> None:
    """All of a statement's scans are done: Iceberg's reader says nothing of one alone, nor of its rows."""
    for relation in relations:
        for task in relation.fragments if find_native(relation) is not None else ():
            if isinstance(task, ScanTask):
                on_fragment(FragmentReport(task.fragment_id, True, elapsed_ms, 0))


def make_table(relation: Relation) -> NativeTable | None:
    """Of a relation; `None` for rows that Iceberg's reader does not give."""
    task = find_native(relation)
    if relation.table is None or task is None:
        return None
    schema = msgspec.json.decode(task.schema)
    narrowed = narrow(relation.table.metadata, relation.table.snapshot_id, schema)
    return NativeTable(
        metadata=msgspec.json.encode(narrowed).decode(),
        schema=task.schema,
        columns=task.columns,
        row_filter=task.row_filter,
        predicates=task.predicates,
        masks=task.masks,
        salt=task.salt,
        places=task.places,
        file_roots=task.file_roots,
    )


def narrow(metadata: dict[str, Any], snapshot_id: int, schema: dict[str, Any]) -> dict[str, Any]:
    """Metadata of a table that has one snapshot, and this schema."""
    snapshot = next(
        (each for each in metadata.get("snapshots") or () if each["snapshot-id"] == snapshot_id), None
    )
    if snapshot is None:
        raise NotReadable("The snapshot of a table is not there any more", fix="Send the statement again.")
    schema_id = schema.get("schema-id", 0)
    specs = metadata.get("partition-specs") or [
        {"spec-id": 0, "fields": metadata.get("partition-spec") or []}
    ]
    unsplit = {"spec-id": 1 + max(each["spec-id"] for each in specs), "fields": []}
    orders = metadata.get("sort-orders") or []
    if all(each["order-id"] != 0 for each in orders):
        orders = [_UNSORTED, *orders]
    others = [each for each in metadata.get("schemas") or () if each.get("schema-id", 0) != schema_id]
    return {
        "last-partition-id": _LEAST_PARTITION_ID,
        **{name: metadata[name] for name in _KEPT if metadata.get(name) is not None},
        "schemas": [*others, _readable(schema, schema_id)],
        "current-schema-id": schema_id,
        "partition-specs": [*specs, unsplit],
        "default-spec-id": unsplit["spec-id"],
        "sort-orders": orders,
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": snapshot_id,
        "snapshots": [{**snapshot, "schema-id": schema_id}],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "snapshot-log": [],
        "metadata-log": [],
    }


def _readable(schema: dict[str, Any], schema_id: int) -> dict[str, Any]:
    """Without columns of types that are not read: Spark knows no table that has one."""
    typed = decode_schema(msgspec.json.encode(schema))
    unread = {field.id for field in typed.fields if find_unsupported(field.type)}
    fields = [each for each in schema["fields"] if each["id"] not in unread]
    return {"type": "struct", "schema-id": schema_id, "fields": fields}
