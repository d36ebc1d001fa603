"""A table as a writer sees it, without a server; and rows written as its files, in a directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cynosure.client.appending.file_set import Limits
from cynosure.client.appending.layout import Layout
from cynosure.client.appending.stores import LocalFiles
from cynosure.client.appending.target import LoadedTable, Target, make_target
from cynosure.client.appending.writing import Uploaded, Writing


def column(id_: int, name: str, type_: Any, *, required: bool = False, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": required, **more}


def make_table(
    columns: Sequence[dict[str, Any]],
    *,
    place: Path | str = "/nowhere",
    by: Sequence[tuple[int, str]] = (),
    **properties: str,
) -> Target:
    """`by`: columns and transforms. Properties are written with `_` for `.` and `-` for `-`."""
    fields = [
        {"name": f"p{at}", "source-id": source, "transform": transform, "field-id": 1000 + at}
        for at, (source, transform) in enumerate(by)
    ]
    metadata = {
        "table-uuid": "0f2e8f6e-0000-7000-8000-000000000001",
        "location": f"file://{place}",
        "schemas": [{"type": "struct", "schema-id": 0, "fields": list(columns)}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "properties": {name.replace("_", "."): value for name, value in properties.items()},
    }
    return make_target(msgspec.json.decode(msgspec.json.encode({"metadata": metadata}), type=LoadedTable))


def make_writing(
    target: Target,
    data: Any,
    *,
    key: str = "k",
    limits: Limits | None = None,
    target_file_bytes: int | None = None,
    store: Any = None,
    is_repeat: bool = False,
) -> Writing:
    return Writing(
        target,
        data,
        Layout(target, key),
        store or LocalFiles(),
        target_file_bytes=target_file_bytes,
        is_repeat=is_repeat,
        limits=limits or Limits(),
        on_progress=None,
    )


async def write(target: Target, data: Any, **options: Any) -> Uploaded:
    return await make_writing(target, data, **options).run()
