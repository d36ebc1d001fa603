"""Files of a plan as JSON: joined from bytes, never an object per file.

A maintainer must not break: a task refers to delete files by their place in the very answer that it is in.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from cynosure.catalog.planning.viewer import Viewer
from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions import encode_expression
from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.iceberg.expressions.unbind import unbind
from cynosure.iceberg.manifests.content_file_json import JsonTypes
from cynosure.iceberg.manifests.delete_index import DeleteIndex
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.row_encoder import RowEncoder

_NOTHING_LEFT: Final = b',"residual-filter":true}'
"""Also where there is no filter: Iceberg's Java client fails on a task without a residual."""


class Chosen(Struct, frozen=True):
    """Some files of one manifest that a plan has."""

    manifest: Manifest
    rows: Sequence[int]
    residuals: Sequence[BoundExpression]
    deletes: Sequence[tuple[int, ...]]
    """Per file, the numbers of its delete files in the index; empty when none of them has any."""


_MOST_ENCODERS: Final = 4


class Envelope(Struct):
    """The tasks of one answer while it is put together."""

    tasks: list[bytes] = field(default_factory=list)
    delete_files: list[bytes] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    """Where a delete file is in this answer, by its number in the index."""


class Encoder:
    """Writes the files of one plan."""

    def __init__(
        self,
        kinds: JsonTypes,
        viewer: Viewer,
        *,
        stats_ids: frozenset[int],
        expression: BoundExpression,
        filter_json: bytes | None,
    ) -> None:
        self._kinds = kinds
        self._viewer = viewer
        self._stats_ids = stats_ids
        self._expression = expression
        self._filter_json = filter_json
        self._delete_files: dict[int, bytes] = {}
        self._encoders: dict[str, RowEncoder] = {}

    def add(self, envelope: Envelope, chosen: Chosen, index: DeleteIndex | None) -> None:
        """Put the tasks of some files into an answer, and the delete files they need."""
        files = self._encoder_of(chosen.manifest).encode_many(chosen.rows)
        ends = self._end(chosen)
        if index is None or not chosen.deletes:
            envelope.tasks += [b'{"data-file":%b%b' % pair for pair in zip(files, ends, strict=True)]
            return
        for file, end, numbers in zip(files, ends, chosen.deletes, strict=True):
            references = b""
            if numbers:
                places = [self._place(envelope, number, index) for number in numbers]
                references = b',"delete-file-references":%b' % msgspec.json.encode(places)
            envelope.tasks.append(b'{"data-file":%b%b%b' % (file, references, end))

    def _encoder_of(self, manifest: Manifest) -> RowEncoder:
        """The parts of a large manifest mostly come one after the other, and have partitions in common."""
        encoder = self._encoders.get(manifest.path)
        if encoder is None:
            if len(self._encoders) >= _MOST_ENCODERS:
                del self._encoders[next(iter(self._encoders))]
            shown = self._viewer.reduce(manifest)
            encoder = RowEncoder(shown, self._kinds, stats_ids=self._stats_ids)
            self._encoders[manifest.path] = encoder
        return encoder

    def _place(self, envelope: Envelope, number: int, index: DeleteIndex) -> int:
        place = envelope.places.get(number)
        if place is None:
            place = envelope.places[number] = len(envelope.delete_files)
            envelope.delete_files.append(self._encode_delete_file(number, index))
        return place

    def _encode_delete_file(self, number: int, index: DeleteIndex) -> bytes:
        known = self._delete_files.get(number)
        if known is None:
            file = index.files[number]
            shown = self._viewer.reduce(file.manifest)
            known = self._delete_files[number] = RowEncoder(shown, self._kinds).encode(file.row)
        return known

    def _end(self, chosen: Chosen) -> list[bytes]:
        """What comes behind the file of each task: its residual."""
        if self._filter_json is None:
            return [_NOTHING_LEFT] * len(chosen.rows)
        written: dict[int, bytes] = {}
        for each in chosen.residuals:
            if id(each) not in written:
                written[id(each)] = self._write(each)
        return [written[id(each)] for each in chosen.residuals]

    def _write(self, residual: BoundExpression) -> bytes:
        if residual == TRUE or self._filter_json is None:
            return _NOTHING_LEFT
        # What nothing was taken from goes back in the words that it came in.
        is_whole = residual is self._expression or residual == self._expression
        text = self._filter_json if is_whole else _encode(residual)
        return b',"residual-filter":%b}' % text


def _encode(residual: BoundExpression) -> bytes:
    expression = unbind(residual)
    try:
        return encode_expression(expression, is_legacy=True)
    except BadInput:
        # Two columns compared: only clients that know the current form can have asked for that.
        return encode_expression(expression)
