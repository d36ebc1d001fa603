"""What one scan is told: files, what to hide, what to show, and how to reach the files.

Everything is resolved: a worker asks no catalog and knows neither the statement nor the policies.

A maintainer must not break: `row_filter` holds on original values and comes first, `masks` on what is left,
`predicates` are the user's and see masked columns never: they name unmasked columns only, and cannot fail.
Credentials are in here and nowhere else, so a task is never logged, printed or put into a plan of Spark.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

MaskAction = Literal[
    "mask-to-fixed-value",
    "replace-with-null",
    "sha-256-query-local",
    "mask-alphanum",
    "truncate-to-year",
    "truncate-to-month",
    "sha-256-global",
    "show-first-4",
    "show-last-4",
]
"""As in the Iceberg REST protocol (`iceberg.restrictions.actions`, which a scan does not know)."""

DEFAULT_MEMORY_BYTES: Final = 8 * 2**30
DEFAULT_BATCH_ROWS: Final = 16_384


class Credentials(Struct, frozen=True):
    """How files are reached: properties as Iceberg's clients name them. The highest number is the newest."""

    number: int = 0
    properties: dict[str, str] = {}
    expires_ms: int = 0
    """When they end, in ms since the epoch; 0: they do not say."""

    def __repr__(self) -> str:
        return f"Credentials({self.number}, …)"


class DeleteFile(Struct, frozen=True):
    """A file that says which rows are gone."""

    kind: Literal["position", "equality", "vector"]
    """`vector`: a deletion vector, a blob in a Puffin file."""
    path: str
    size_bytes: int
    format: str
    equality_ids: tuple[int, ...] = ()
    offset: int = 0
    """Of the blob, for vectors."""
    length: int = 0
    record_count: int = 0


class DataFile(Struct, frozen=True):
    """A file, or a part of one, and what is gone from it."""

    path: str
    size_bytes: int
    record_count: int
    format: str
    deletes: tuple[int, ...] = ()
    """Places in `ScanTask.deletes`."""
    begin: int = 0
    end: int = 0
    """A part of the file: the row groups that begin (first byte of data) in [begin, end). 0, 0: all of it."""
    constants: dict[int, Any] = {}
    """Values, as JSON single values, of identity partition columns by field id: used where the file does not
    have the column."""
    residual: bytes = b"true"
    """What is left of `row_filter and predicates` for this file after pruning: JSON of an expression by field
    id. A scan may use it in place of both *only* to skip; rows are decided by `row_filter` and
    `predicates`."""


class Mask(Struct, frozen=True):
    """A column, or a field in structs, that is shown otherwise."""

    field_id: int
    action: MaskAction


class MetadataRead(Struct, frozen=True):
    """What is told about a table's files, in place of their rows."""

    kind: str
    """The metadata table, as Iceberg names it."""
    manifest_list: str
    specs: tuple[bytes, ...]
    """JSON of the table's partition specs, the newest last."""
    schema: bytes
    """JSON of the table's own schema: what partition values are made of."""
    snapshots: dict[int, int] = {}
    """When each was made, in ms since the epoch."""


class ScanTask(Struct, frozen=True):
    """One fragment of the scan of one mention of a table."""

    query_id: str
    fragment_id: str
    files: tuple[DataFile, ...]
    deletes: tuple[DeleteFile, ...]
    schema: bytes
    """JSON of the Iceberg schema to read with, with field ids, required, defaults."""
    columns: tuple[int, ...]
    """Top-level field ids to give, in this order. None: batches without columns, only with numbers of
    rows."""
    places: tuple[str, ...]
    """Where the table's files are; nothing outside is read."""
    row_filter: bytes = b"true"
    """JSON of an expression: by field id, constants of the columns' exact types, without `not`."""
    masks: tuple[Mask, ...] = ()
    predicates: bytes = b"true"
    """JSON of an expression in the same form, over unmasked columns only: the user's, as an optimisation.
    Rows that it refuses may be left out or given: whoever asked applies it again."""
    name_mapping: bytes = b""
    """The table's `schema.name-mapping.default`, for files without field ids; empty: it has none."""
    salt: bytes = b""
    """Of `sha-256-query-local`: one per statement."""
    credentials: Credentials = Credentials()
    file_roots: tuple[str, ...] = ()
    """Local directories (`file:`) that may be read at all."""
    memory_limit_bytes: int = DEFAULT_MEMORY_BYTES
    """Of the process: what this scan and those beside it may hold together."""
    batch_rows: int = DEFAULT_BATCH_ROWS
    storage: dict[str, Any] = {}
    """`StorageSettings` that matter to a reader (extra CAs as PEM text, timeouts), as builtins."""
    metadata: MetadataRead | None = None
    """In place of `files`; `schema` is the metadata table's then. Only where nothing is hidden."""

    @property
    def total_bytes(self) -> int:
        """What is read at most, of data files."""
        return sum((each.end - each.begin) or each.size_bytes for each in self.files)

    def __repr__(self) -> str:
        return f"ScanTask({self.query_id}, {self.fragment_id}, {len(self.files)} files, …)"


class InlineTask(Struct, frozen=True):
    """Rows that the coordinator has itself: runtime and metadata tables. Nothing is read."""

    query_id: str
    fragment_id: str
    batches: bytes
    """An Arrow IPC stream."""

    def __repr__(self) -> str:
        return f"InlineTask({self.query_id}, {self.fragment_id}, …)"


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(ScanTask)


def encode_task(task: ScanTask) -> bytes:
    """As it goes over a stream."""
    return _ENCODER.encode(task)


def decode_task(data: bytes) -> ScanTask:
    """`msgspec.ValidationError` for anything else."""
    return _DECODER.decode(data)
