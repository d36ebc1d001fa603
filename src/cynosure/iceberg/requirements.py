"""Requirements: what a client says must be true of a table for its updates to make sense.

A maintainer must not break: the texts are those of Iceberg's reference implementation, which clients look
for.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Int32, Int64, compact_json
from cynosure.iceberg.errors import InvalidUpdate, RequirementFailed
from cynosure.iceberg.metadata.table import TableMetadata


class AssertCreate(Struct, frozen=True, tag_field="type", tag="assert-create"):
    """There is no table yet."""


class AssertTableUuid(Struct, frozen=True, tag_field="type", tag="assert-table-uuid"):
    """The table is the one the client read, not another of the same name."""

    uuid: str


class AssertRefSnapshotId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-ref-snapshot-id"
):
    """A branch or tag is where the client saw it; with None it must not exist."""

    ref: str
    snapshot_id: Int64 | None = None


class AssertLastAssignedFieldId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-last-assigned-field-id"
):
    """No other client has assigned a column id since."""

    last_assigned_field_id: Int32


class AssertCurrentSchemaId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-current-schema-id"
):
    """The current schema is still the same."""

    current_schema_id: Int32


class AssertLastAssignedPartitionId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-last-assigned-partition-id"
):
    """No other client has assigned a partition field id since."""

    last_assigned_partition_id: Int32


class AssertDefaultSpecId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-default-spec-id"
):
    """The default spec is still the same."""

    default_spec_id: Int32


class AssertDefaultSortOrderId(
    Struct, frozen=True, rename="kebab", tag_field="type", tag="assert-default-sort-order-id"
):
    """The default sort order is still the same."""

    default_sort_order_id: Int32


TableRequirement = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
"""Every requirement on a table that the protocol knows, told apart by `type`."""


def decode_requirements(json: bytes | Raw) -> list[TableRequirement]:
    """The requirements of a request body, naming the position of the one that cannot be read."""
    body = compact_json(json, field="requirements")
    try:
        return _REQUIREMENTS.decode(body)
    except msgspec.ValidationError as error:
        place = re.search(r" - at `\$(.*)`$", str(error))
        field = f"requirements{place[1]}" if place else "requirements"
        raise InvalidUpdate(
            "The requirement is unknown" if field.endswith(".type") else "The requirement is not valid",
            field=field,
            fix="Send requirements as the REST catalog specification defines them.",
            problem=re.sub(r" - at `.*`$", "", str(error))[:200],
        ) from error


def check_requirements(base: TableMetadata | None, requirements: Iterable[TableRequirement]) -> None:
    """Raise for the first requirement that the table does not meet. None means that there is no table."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if base is not None:
                raise RequirementFailed("table already exists")
        elif base is None:
            raise RequirementFailed("table does not exist")
        else:
            _CHECK[type(requirement)](base, requirement)


def check_table_uuid(base: TableMetadata, requirement: AssertTableUuid) -> None:
    """UUIDs are compared without regard to letter case."""
    if base.table_uuid.lower() != requirement.uuid.lower():
        raise RequirementFailed(f"UUID does not match: expected {base.table_uuid} != {requirement.uuid}")


def check_ref_snapshot_id(base: TableMetadata, requirement: AssertRefSnapshotId) -> None:
    """The requirement of nearly every write."""
    ref = base.find_ref(requirement.ref)
    expected = requirement.snapshot_id
    if ref is None:
        if expected is not None:
            raise RequirementFailed(f"branch or tag {requirement.ref} is missing, expected {expected}")
    elif expected is None:
        raise RequirementFailed(f"{ref.type} {requirement.ref} was created concurrently")
    elif expected != ref.snapshot_id:
        raise RequirementFailed(
            f"{ref.type} {requirement.ref} has changed: expected id {expected} != {ref.snapshot_id}"
        )


def check_last_assigned_field_id(base: TableMetadata, requirement: AssertLastAssignedFieldId) -> None:
    """Guards new columns."""
    _check_same("last assigned field id", requirement.last_assigned_field_id, base.last_column_id)


def check_current_schema_id(base: TableMetadata, requirement: AssertCurrentSchemaId) -> None:
    """Guards a change of schema."""
    _check_same("current schema", requirement.current_schema_id, base.current_schema_id)


def check_last_assigned_partition_id(base: TableMetadata, requirement: AssertLastAssignedPartitionId) -> None:
    """Guards new partition fields."""
    _check_same("last assigned partition id", requirement.last_assigned_partition_id, base.last_partition_id)


def check_default_spec_id(base: TableMetadata, requirement: AssertDefaultSpecId) -> None:
    """Guards a change of partitioning."""
    _check_same("default partition spec", requirement.default_spec_id, base.default_spec_id)


def check_default_sort_order_id(base: TableMetadata, requirement: AssertDefaultSortOrderId) -> None:
    """Guards a change of sorting."""
    _check_same("default sort order", requirement.default_sort_order_id, base.default_sort_order_id)


def _check_same(what: str, expected: int, found: int) -> None:
    if expected != found:
        raise RequirementFailed(f"{what} changed: expected id {expected} != {found}")


_CHECK: Final[Mapping[type, Callable[[TableMetadata, Any], None]]] = {
    AssertTableUuid: check_table_uuid,
    AssertRefSnapshotId: check_ref_snapshot_id,
    AssertLastAssignedFieldId: check_last_assigned_field_id,
    AssertCurrentSchemaId: check_current_schema_id,
    AssertLastAssignedPartitionId: check_last_assigned_partition_id,
    AssertDefaultSpecId: check_default_spec_id,
    AssertDefaultSortOrderId: check_default_sort_order_id,
}

_REQUIREMENTS: Final = msgspec.json.Decoder(list[TableRequirement])
