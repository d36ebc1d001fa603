"""A table in memory: its stored state, its metadata, and the answers made of it so far."""

from cynosure.catalog.managed.answer import Snapshots, TableAnswer, make_etag
from cynosure.catalog.managed.parts import Parts
from cynosure.catalog.managed.state import TABLE, TableState
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


class ManagedTable:
    """One version of a table. Immutable but for the answers it keeps."""

    __slots__ = ("_answers", "metadata", "parts", "state", "state_id")

    def __init__(self, state_id: ObjId, state: TableState, metadata: TableMetadata, parts: Parts) -> None:
        self.state_id = state_id
        self.state = state
        self.metadata = metadata
        self.parts = parts
        self._answers: dict[Snapshots, TableAnswer] = {}

    @property
    def ref(self) -> ObjRef:
        """Where the state is stored; the value of its index entry."""
        return ObjRef(self.state_id, TABLE.name)

    def answer(self, snapshots: Snapshots = "all") -> TableAnswer:
        """What clients are told."""
        answer = self._answers.get(snapshots)
        if answer is None:
            answer = self._answers[snapshots] = TableAnswer(
                encode_metadata(self.metadata, snapshots=snapshots),
                self.state.metadata_location,
                make_etag(self.state_id, snapshots),
            )
        return answer

    def adopt_json(self, metadata: bytes) -> None:
        """Take metadata that was encoded for the file as the answer with all snapshots."""
        self._answers["all"] = TableAnswer(
            metadata, self.state.metadata_location, make_etag(self.state_id, "all")
        )

    def weigh(self) -> int:
        """Estimate of the memory this table takes, in bytes."""
        if (answer := self._answers.get("all")) is not None:
            return 6_000 + 3 * len(answer.metadata)
        metadata = self.metadata
        chunks = (*metadata.snapshots.chunks, *metadata.snapshot_log.chunks, *metadata.metadata_log.chunks)
        json_bytes = sum(len(chunk.json) + 50 * len(chunk.keys) for chunk in chunks)
        json_bytes += sum(len(document.json) for document in metadata.schemas)
        json_bytes += sum(len(name) + len(value) for name, value in metadata.properties.items())
        # The pieces, and one or two answers joined from them.
        return 6_000 + 3 * json_bytes
