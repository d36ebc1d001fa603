"""Pages of a plan as files, deletes and credentials.

A maintainer must not break: a file of which anything is not understood fails the plan. Nothing is left out:
a missing delete file shows rows that are gone.
"""

from collections.abc import Mapping
from typing import Any, Final

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions import bind, encode_expression, parse_expression
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundExpression,
    BoundMembership,
    BoundReference,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    Always,
    And,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Membership,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import StructType
from cynosure.query.catalog_access.wire import ContentFile, PlanPage, StorageCredential
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Credentials, DataFile, DeleteFile
from cynosure.storage.errors import StorageRefused
from cynosure.storage.vended_expiry import find_expiry_ms

TRUE_JSON: Final = b"true"
_SECRETS: Final = ("s3.access-key-id", "gcs.oauth2.token", "adls.sas-token")
_DATA: Final = "data"
_POSITION: Final = "position-deletes"
_EQUALITY: Final = "equality-deletes"
_PARQUET: Final = "parquet"
_PUFFIN: Final = "puffin"


class PlanReader:
    """Puts the pages of one plan together."""

    def __init__(self, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """`schema` is what residuals are about; `metadata` the table's, for partition specs."""
        self._schema = schema
        self._struct = StructType(schema.fields)
        self._specs = {
            int(each.get("spec-id", 0)): tuple(each.get("fields", ()))
            for each in metadata.get("partition-specs") or ()
        }
        self._residuals: dict[bytes, bytes] = {TRUE_JSON: TRUE_JSON}
        self._places: dict[DeleteFile, int] = {}
        self.files: list[DataFile] = []
        self.offsets: list[tuple[int, ...]] = []
        self.deletes: list[DeleteFile] = []

    def add(self, page: PlanPage) -> None:
        """Take the files of a page."""
        known = [self._delete(each) for each in page.delete_files or ()]
        for task in page.file_scan_tasks or ():
            file = task.data_file
            if file.content != _DATA or file.key_metadata is not None:
                raise _not_readable("A file of the table is of a kind that is not read", file)
            if file.file_format.lower() != _PARQUET:
                raise _not_readable("The table has files of a format that governed SQL does not read", file)
            try:
                deletes = tuple(known[place] for place in task.delete_file_references or ())
            except IndexError as error:
                raise _not_readable(
                    "A file of the plan refers to a delete file that is not there", file
                ) from error
            self.files.append(
                DataFile(
                    path=file.file_path,
                    size_bytes=file.file_size_in_bytes,
                    record_count=file.record_count,
                    format=file.file_format.lower(),
                    deletes=deletes,
                    constants=self._constants(file),
                    residual=self._residual(bytes(task.residual_filter)),
                )
            )
            self.offsets.append(tuple(file.split_offsets or ()))

    def _delete(self, file: ContentFile) -> int:
        if file.key_metadata is not None:
            raise _not_readable("A delete file of the table is encrypted, which is not read", file)
        format_ = file.file_format.lower()
        if format_ not in (_PARQUET, _PUFFIN):
            raise _not_readable("The table has files of a format that governed SQL does not read", file)
        if file.content == _POSITION and format_ == _PUFFIN:
            if file.content_offset is None or file.content_size_in_bytes is None:
                raise _not_readable("A deletion vector does not say where it is", file)
            found = DeleteFile(
                "vector",
                file.file_path,
                file.file_size_in_bytes,
                format_,
                offset=file.content_offset,
                length=file.content_size_in_bytes,
                record_count=file.record_count,
            )
        elif file.content == _POSITION:
            found = DeleteFile(
                "position",
                file.file_path,
                file.file_size_in_bytes,
                format_,
                record_count=file.record_count,
            )
        elif file.content == _EQUALITY and file.equality_ids:
            found = DeleteFile(
                "equality",
                file.file_path,
                file.file_size_in_bytes,
                format_,
                equality_ids=tuple(file.equality_ids),
                record_count=file.record_count,
            )
        else:
            raise _not_readable("A delete file of the table is of a kind that is not read", file)
        place = self._places.get(found)
        if place is None:
            place = self._places[found] = len(self.deletes)
            self.deletes.append(found)
        return place

    def _constants(self, file: ContentFile) -> dict[int, Any]:
        fields = self._specs.get(file.spec_id)
        if fields is None or len(fields) != len(file.partition):
            raise _not_readable("A file of the table is of a partitioning that is not known", file)
        return {
            int(field["source-id"]): value
            for field, value in zip(fields, file.partition, strict=True)
            if field.get("transform") == "identity" and "source-id" in field
        }

    def _residual(self, json: bytes) -> bytes:
        """By field id and with exact constants, in whatever form it came. It is about skipping only."""
        found = self._residuals.get(json)
        if found is None:
            try:
                bound = bind(parse_expression(json), self._struct, are_times_numbers=True)
                found = encode_expression(write_by_id(bound))
            except BadInput:
                # It only saves work: everything of the file is read then.
                found = TRUE_JSON
            self._residuals[json] = found
        return found


def write_by_id(expression: BoundExpression) -> Expression:
    """A bound filter with field ids, and constants of the columns' exact types; `BadInput` for transforms."""
    return fold(expression, _write)


def _write(node: BoundExpression) -> tuple[tuple[BoundExpression, ...], Join[Expression]]:
    leaf: Expression
    match node:
        case And(left, right):
            return (left, right), lambda parts: And(parts[0], parts[1])
        case Or(left, right):
            return (left, right), lambda parts: Or(parts[0], parts[1])
        case Not(child):
            return (child,), lambda parts: Not(parts[0])
        case Always():
            leaf = node
        case BoundUnary(op, BoundReference(id_)):
            leaf = Unary(op, IdReference(id_))
        case BoundComparison(op, BoundReference(id_, _, type_), value):
            leaf = Comparison(op, IdReference(id_), Constant(write_value(type_, value), type_))
        case BoundMembership(op, BoundReference(id_, _, type_), values):
            constants = tuple(Constant(write_value(type_, each), type_) for each in values)
            leaf = Membership(op, IdReference(id_), constants)
        case _:
            raise BadInput("A filter is about columns and constants", field="filter", fix="Leave it out.")
    return (), lambda _: leaf


def read_credentials(
    given: list[StorageCredential], scheme: str, number: int, *, name: str
) -> tuple[Credentials, tuple[str, ...]]:
    """How files are reached, and the places that this opens. `StorageRefused` where that is not said."""
    if scheme == "file":
        return Credentials(number), ()
    if not given:
        raise _no_credentials(name)
    properties = given[0].config
    if not any(properties.get(key) for key in _SECRETS) and not any(
        key.startswith("adls.sas-token") for key in properties
    ):
        raise _no_credentials(name)
    return (
        Credentials(number, properties, find_expiry_ms(properties)),
        tuple(each.prefix for each in given),
    )


def _not_readable(message: str, file: ContentFile) -> NotReadable:
    return NotReadable(
        message,
        fix="Rewrite the table's files with another engine.",
        format=file.file_format[:20],
        content=file.content[:20],
    )


def _no_credentials(name: str) -> StorageRefused:
    return StorageRefused(
        "The catalog gives no credentials for the files of this table",
        fix="Configure the catalog's storage so that it can give credentials to clients (for S3: a token "
        "service and a role); signing requests one by one is not enough for a scan.",
        table=name,
    )
