"""What somebody is told about a table that they may not see all of.

Snapshots tell how many rows there are, and how many of which partition were added; statistics tell about the
values of columns. None of it is answered. What is left reads as a table: what was done when, and where.

Must not break: the ETag names the restrictions. Whoever has an answer without them, or with others, is never
told that it is still good.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from cynosure.catalog.managed.answer import Snapshots, TableAnswer
from cynosure.catalog.managed.table import ManagedTable
from cynosure.iceberg.restrictions.wire import mark_of
from cynosure.persistence.spi import ObjId

_KEPT: Final = frozenset(
    {
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "timestamp-ms",
        "manifest-list",
        "manifests",
        "schema-id",
        "key-id",
    }
)
"""Of a snapshot. Not its counts of rows (`added-rows`, `first-row-id`)."""
_MOST_ANSWERS: Final = 256
_MOST_BYTES: Final = 32 * 1024 * 1024


class RestrictedAnswers:
    """Answers with restrictions, the ones used last."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[ObjId, Snapshots, bytes], TableAnswer] = OrderedDict()
        self._weight_bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, table: ManagedTable, snapshots: Snapshots, json: bytes) -> TableAnswer:
        """What is told about a version of a table, with these restrictions."""
        key = (table.state_id, snapshots, json)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _answer(table, snapshots, json)
            self._weight_bytes += len(answer.metadata)
            while len(self._answers) > 1 and (
                len(self._answers) > _MOST_ANSWERS or self._weight_bytes > _MOST_BYTES
            ):
                _, gone = self._answers.popitem(last=False)
                self._weight_bytes -= len(gone.metadata)
        else:
            self._answers.move_to_end(key)
        return answer


def _answer(table: ManagedTable, snapshots: Snapshots, json: bytes) -> TableAnswer:
    etag = b'W/"%x-%b-%b"' % (table.state_id, snapshots.encode(), mark_of(json).encode())
    metadata = msgspec.json.encode(reduce_metadata(msgspec.json.decode(table.answer(snapshots).metadata)))
    return TableAnswer(metadata, table.state.metadata_location, etag, restrictions=json)


def reduce_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Table metadata without what it tells about rows."""
    reduced = {**metadata, "snapshots": [_reduce_snapshot(each) for each in metadata.get("snapshots", ())]}
    for name in ("statistics", "partition-statistics"):
        if name in reduced:
            reduced[name] = []
    if "next-row-id" in reduced:
        reduced["next-row-id"] = 0
    return reduced


def _reduce_snapshot(snapshot: dict[str, Any]) -> dict[str, Any]:
    reduced = {name: value for name, value in snapshot.items() if name in _KEPT}
    summary = snapshot.get("summary")
    if isinstance(summary, dict):
        reduced["summary"] = {name: value for name, value in summary.items() if name == "operation"}
    return reduced
