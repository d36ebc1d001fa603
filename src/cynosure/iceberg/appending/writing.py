"""How manifests of a table are written: what they say of the table, and how they are compressed.

A maintainer must not break: partition values of columns that are gone are still written with the type they
had. A table keeps such files, and what their manifests say of them.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.manifests.write_manifest import ManifestKind, spec_fields_json
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.transforms import result_type
from cynosure.iceberg.types import Type

_CODECS: Final = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "uncompressed": "null",
    "none": "null",
    "null": "null",
}


def find_codec(properties: Mapping[str, str]) -> str:
    """The codec of a table's manifests and lists. One that we cannot write is Iceberg's default."""
    return _CODECS.get(properties.get("write.manifest.compression-codec", "gzip").lower(), "deflate")


def find_type(metadata: TableMetadata, column: int) -> Type | None:
    """The type of a column: the current one, or the last that it had."""
    current = metadata.current_schema().find_type(column)
    if current is not None:
        return current
    found = (one.value.find_type(column) for one in reversed(metadata.schemas))
    return next((type_ for type_ in found if type_ is not None), None)


def find_spec(metadata: TableMetadata, spec_id: int) -> PartitionSpec | None:
    """A partition spec by its id."""
    specs = (one.value for one in metadata.partition_specs)
    return next((spec for spec in specs if spec.spec_id == spec_id), None)


def spec_types(metadata: TableMetadata, spec: PartitionSpec) -> tuple[Type | None, ...]:
    """The types of a spec's values, also of columns that are gone; None when no schema has the column."""
    sources = map(partial(find_type, metadata), (field.sources[0] for field in spec.fields))
    return tuple(
        None if source is None else result_type(field.transform, source)
        for field, source in zip(spec.fields, sources, strict=True)
    )


def manifest_kind(metadata: TableMetadata, spec_id: int) -> ManifestKind:
    """What a data manifest of a partition spec says of its table."""
    spec = find_spec(metadata, spec_id)
    if spec is None:
        raise InvalidUpdate(
            "The table does not have this partition spec",
            field="spec-id",
            fix="Name a partition spec of the table.",
            spec_id=spec_id,
        )
    return ManifestKind(
        format_version=metadata.format_version,
        spec=spec,
        partition_types=spec_types(metadata, spec),
        spec_json=spec_fields_json(spec),
        schema_json=metadata.current_schema_document().json,
        schema_id=metadata.current_schema_id,
    )
