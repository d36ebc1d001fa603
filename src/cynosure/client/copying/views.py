"""A view for the other catalog, from what the first one says of it.

The SQL is not changed: names without a catalog mean those of the catalog that it is asked in.
"""

from collections.abc import Mapping
from typing import Any, Final

from cynosure.client.copying.ends import Path
from cynosure.client.copying.state import VIEW_UUID, VIEW_VERSION, make_properties
from cynosure.client.migration import MovedObject
from cynosure.common.errors import BadInput

_KEPT: Final = (
    "timestamp-ms",
    "schema-id",
    "summary",
    "representations",
    "default-catalog",
    "default-namespace",
)


def make_view(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What creates a view as the current version has it, in all its dialects."""
    version = _current(metadata)
    schemas = metadata.get("schemas") or []
    schema = next((each for each in schemas if each.get("schema-id", 0) == version.get("schema-id", 0)), None)
    if schema is None:
        raise BadInput(
            "The view's metadata lack the schema of its current version",
            field="schemas",
            fix="Replace the view, or leave it behind.",
        )
    return {
        "schema": schema,
        "view-version": {"version-id": 1, **{name: version[name] for name in _KEPT if name in version}},
        "properties": make_properties(metadata.get("properties") or {}, metadata["location"])
        | {VIEW_UUID: metadata["view-uuid"], VIEW_VERSION: str(version["version-id"])},
    }


def find_view_copy(
    path: Path, metadata: Mapping[str, Any], has: Mapping[str, Any], catalog: str
) -> MovedObject:
    """The copy that a catalog has. Refused when it has another view of the name."""
    properties = has.get("properties") or {}
    if properties.get(VIEW_UUID) != metadata["view-uuid"]:
        raise BadInput(
            f"{catalog} has another view of this name: {has['view-uuid']}",
            field="into",
            fix="Rename one of them.",
        )
    version = properties.get(VIEW_VERSION, "")
    what = f"a copy of version {version}"
    is_same = version == str(metadata["current-version-id"])
    return MovedObject("view", path, "there", what if is_same else f"{what}; the view has gone on since")


def _current(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    for each in metadata.get("versions") or ():
        if each["version-id"] == metadata["current-version-id"]:
            found: Mapping[str, Any] = each
            return found
    raise BadInput(
        "The view's metadata lack its current version",
        field="versions",
        fix="Replace the view, or leave it behind.",
    )
