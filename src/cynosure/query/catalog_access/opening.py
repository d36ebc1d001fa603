"""An answer of loadTable as a table at one snapshot, with all that its reader must hide.

Which schema it is read with is Iceberg's rule: the current one for the table and its branches, the snapshot's
own for a snapshot id, a tag or a time.

A maintainer must not break: a part of `read-restrictions` that is not known here hides the table. A newer
catalog may say what this gateway does not understand.
"""

from typing import Any, Final, NoReturn

import msgspec

from cynosure.query.catalog_access.port import MappingFilter, OpenedTable, RowFilter, TableName
from cynosure.query.catalog_access.wire import LoadedTable
from cynosure.query.errors import NotReadable, PolicyHides, SqlError
from cynosure.query.scan_task import Mask
from cynosure.query.sql.bound import TimeTravel

_PATHS: Final = (
    "write.metadata.path",
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties that send files of a table elsewhere."""
_NAME_MAPPING: Final = "schema.name-mapping.default"
_MAIN: Final = "main"
_KNOWN: Final = frozenset(
    {"required-row-filter", "required-column-projections", "cynosure-policies", "cynosure-mappings"}
)


def open_table(name: TableName, loaded: LoadedTable, travel: TimeTravel | None) -> OpenedTable:
    """A table at the snapshot that is asked for. `SqlError` when there is none, `PolicyHides` when unsure."""
    metadata = loaded.metadata
    snapshot_id, is_current_schema = _find_snapshot(name, metadata, travel)
    said = loaded.read_restrictions
    policies = tuple(str(each) for each in said.get("cynosure-policies", ()))
    if not said.keys() <= _KNOWN:
        _hide(name, policies)
    try:
        row_filter = _read_filter(name, said, policies)
        masks = tuple(
            msgspec.convert({"field_id": each["field-id"], "action": each["action"]}, Mask)
            for each in said.get("required-column-projections", ())
        )
    except (KeyError, TypeError, IndexError, msgspec.ValidationError) as error:
        raise _hiding(name, policies) from error
    schema = _find_schema(metadata, snapshot_id, is_current=is_current_schema)
    # Masks on fields that this schema does not have are nothing to it: ids are never used again.
    ids = _field_ids(schema)
    properties = metadata.get("properties") or {}
    elsewhere = [text for key in _PATHS if (text := properties.get(key))]
    return OpenedTable(
        name=name,
        uuid=str(metadata.get("table-uuid", "")),
        snapshot_id=snapshot_id,
        schema=msgspec.json.encode(schema),
        is_current_schema=is_current_schema,
        row_filter=row_filter,
        masks=tuple(each for each in masks if each.field_id in ids),
        policies=policies,
        places=tuple(dict.fromkeys([str(metadata["location"]), *elsewhere])),
        name_mapping=properties.get(_NAME_MAPPING, "").encode(),
        metadata=metadata,
        restrictions=canonical(said),
    )


def canonical(restrictions: dict[str, Any]) -> bytes:
    """Restrictions as bytes that are equal when they say the same."""
    return msgspec.json.encode(restrictions, order="deterministic")


def _read_filter(name: TableName, said: dict[str, Any], policies: tuple[str, ...]) -> RowFilter:
    expression = said.get("required-row-filter", True)
    mappings = tuple(
        MappingFilter(
            # The leaf says it; `coordinator.policies` takes it from there.
            field_id=0,
            table=TableName(name.catalog, tuple(map(str, each["namespace"])), str(each["name"])),
            value_column=str(each["column"]),
            filter=msgspec.json.encode(each["filter"]),
            policy=str(each.get("policy", policies[0] if policies else "")),
        )
        for each in said.get("cynosure-mappings", ())
    )
    return RowFilter(msgspec.json.encode(expression), mappings)


def _find_snapshot(name: TableName, metadata: dict[str, Any], travel: TimeTravel | None) -> tuple[int, bool]:
    """The snapshot, and whether it is read with the table's current schema."""
    current = metadata.get("current-snapshot-id")
    if travel is None or (travel.version is None and travel.timestamp_us is None):
        return (0 if current is None or current == -1 else int(current)), True
    known = {int(each["snapshot-id"]) for each in metadata.get("snapshots") or ()}
    if travel.timestamp_us is not None:
        found = _find_at(metadata, travel.timestamp_us)
        if found is None or found not in known:
            raise SqlError(
                "The table has no snapshot as old as that",
                fix="Name a later time, or a snapshot of `SELECT * FROM table.snapshots`.",
                table=str(name),
            )
        return found, False
    version = travel.version
    refs = metadata.get("refs") or {}
    if isinstance(version, str) and version in refs:
        ref = refs[version]
        return int(ref["snapshot-id"]), ref.get("type") != "tag"
    if version == _MAIN:
        # The main branch of a table without snapshots has no entry.
        return (0 if current is None or current == -1 else int(current)), True
    text = str(version)
    wanted = int(text) if text.isascii() and text.isdecimal() else None
    if wanted is None or wanted not in known:
        raise SqlError(
            "The table has no such snapshot, branch or tag",
            fix="Name one of `SELECT * FROM table.refs` or `table.snapshots`; it may have expired.",
            table=str(name),
        )
    return wanted, False


def _find_at(metadata: dict[str, Any], timestamp_us: int) -> int | None:
    found = None
    for entry in metadata.get("snapshot-log") or ():
        if int(entry["timestamp-ms"]) * 1000 <= timestamp_us:
            found = int(entry["snapshot-id"])
    return found


def _find_schema(metadata: dict[str, Any], snapshot_id: int, *, is_current: bool) -> dict[str, Any]:
    wanted = metadata.get("current-schema-id")
    if not is_current:
        snapshots = {int(each["snapshot-id"]): each for each in metadata.get("snapshots") or ()}
        of_snapshot = snapshots.get(snapshot_id, {}).get("schema-id")
        # Snapshots of the first format version do not say; readers take the current one then.
        wanted = wanted if of_snapshot is None else of_snapshot
    for each in metadata.get("schemas") or ():
        if each.get("schema-id", 0) == wanted:
            return dict(each)
    raise NotReadable(
        "The metadata of the table names a schema that it does not have",
        fix="Have its owner repair it, or read another version of the table.",
        schema_id=wanted,
    )


def _field_ids(schema: dict[str, Any]) -> set[int]:
    """Ids of all fields, nested ones included."""
    ids: set[int] = set()
    pending: list[Any] = [schema]
    while pending:
        type_ = pending.pop()
        if not isinstance(type_, dict):
            continue
        for field in type_.get("fields", ()):
            ids.add(int(field["id"]))
            pending.append(field["type"])
        for part in ("element", "key", "value"):
            if f"{part}-id" in type_:
                ids.add(int(type_[f"{part}-id"]))
                pending.append(type_[part])
    return ids


def _hide(name: TableName, policies: tuple[str, ...]) -> NoReturn:
    raise _hiding(name, policies)


def _hiding(name: TableName, policies: tuple[str, ...]) -> PolicyHides:
    return PolicyHides(
        "A policy of this table says what this gateway does not understand, so the table is hidden",
        fix="Use a gateway of the catalog's version.",
        table=str(name),
        policies=", ".join(policies),
    )
