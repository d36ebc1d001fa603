"""Table metadata to JSON, by joining what is encoded already.

A maintainer must not break: with `snapshots="refs"` the cost does not grow with the number of snapshots,
and no stored document is decoded here except the few that version 1 repeats.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from cynosure.iceberg.document import Document
from cynosure.iceberg.fragments import Fragments
from cynosure.iceberg.metadata.table import MIN_VERSION_OF_ROW_LINEAGE, TableMetadata

_encode: Final = msgspec.json.Encoder().encode
_NO_SNAPSHOT: Final = {1: b"-1", 2: b"-1", 3: b"null"}
"""How "no current snapshot" is written. Readers of versions 1 and 2 may not know null."""


def encode_metadata(
    metadata: TableMetadata, *, snapshots: Literal["all", "refs"] = "all", head: bytes | None = None
) -> bytes:
    """The metadata file, or what a load answers.

    With "refs" only snapshots that a branch or tag names are in it; the logs are complete in both. `head`
    is what `encode_head` gave for the same metadata, if the caller kept it.
    """
    parts = [encode_head(metadata) if head is None else head, b',"snapshots":[']
    if snapshots == "all":
        _extend(parts, metadata.snapshots)
    else:
        parts.append(metadata.snapshots.refs_only(ref.value.snapshot_id for ref in metadata.refs.values()))
    for name, fragments in (
        (b'],"statistics":[', metadata.statistics),
        (b'],"partition-statistics":[', metadata.partition_statistics),
        (b'],"snapshot-log":[', metadata.snapshot_log),
        (b'],"metadata-log":[', metadata.metadata_log),
    ):
        parts.append(name)
        _extend(parts, fragments)
    parts.append(b"]}")
    return b"".join(parts)


def _extend(parts: list[bytes], fragments: Fragments) -> None:
    # Chunk by chunk into the one join: joining the fragments first would copy a large table twice.
    for chunk in fragments.chunks:
        parts += (chunk.json, b",")
    if fragments.chunks:
        parts.pop()


def encode_head(metadata: TableMetadata) -> bytes:
    """All but what grows with every commit, as JSON without its closing brace."""
    version = metadata.format_version
    current = metadata.current_snapshot_id
    parts = [
        b'{"format-version":%d,"table-uuid":%b,"location":%b,"last-updated-ms":%d,"last-column-id":%d'
        % (
            version,
            _encode(metadata.table_uuid),
            _encode(metadata.location),
            metadata.last_updated_ms,
            metadata.last_column_id,
        ),
        b',"current-schema-id":%d,"schemas":[%b]' % (metadata.current_schema_id, _join(metadata.schemas)),
        b',"default-spec-id":%d,"partition-specs":[%b],"last-partition-id":%d'
        % (metadata.default_spec_id, _join(metadata.partition_specs), metadata.last_partition_id),
        b',"default-sort-order-id":%d,"sort-orders":[%b]'
        % (metadata.default_sort_order_id, _join(metadata.sort_orders)),
        b',"properties":%b,"current-snapshot-id":%b,"refs":{%b}'
        % (
            _encode(metadata.properties),
            _NO_SNAPSHOT[version] if current is None else b"%d" % current,
            b",".join([b"%b:%b" % (_encode(name), ref.json) for name, ref in metadata.refs.items()]),
        ),
    ]
    if version == 1:
        # Readers older than schema evolution know only these two.
        fields = msgspec.json.decode(metadata.default_spec_document().json, type=_JustFields).fields
        parts.append(
            b',"schema":%b,"partition-spec":%b' % (metadata.current_schema_document().json, bytes(fields))
        )
    else:
        parts.append(b',"last-sequence-number":%d' % metadata.last_sequence_number)
    if version >= MIN_VERSION_OF_ROW_LINEAGE:
        parts.append(b',"next-row-id":%d' % (metadata.next_row_id or 0))
    if metadata.encryption_keys:
        parts.append(b',"encryption-keys":[%b]' % _join(metadata.encryption_keys.values()))
    parts.extend([b",%b:%b" % (_encode(name), json) for name, json in metadata.unknown.items()])
    return b"".join(parts)


class _JustFields(msgspec.Struct):
    fields: msgspec.Raw


def _join(documents: Iterable[Document[Any]]) -> bytes:
    return b",".join([one.json for one in documents])
