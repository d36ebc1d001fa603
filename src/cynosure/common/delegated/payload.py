"""A task as it is ordered: the document of the proposal, and what is kept of it.

A maintainer must not break: `config`, which may hold credentials, is accepted and dropped while it is read.
No struct here has a field for it.
"""

import hashlib
import uuid
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from cynosure.common.delegated.vocabulary import TaskType, parse_task_type
from cynosure.common.errors import BadInput

_TASKS: Final = uuid.UUID("6f0ca3ad-5d2f-5c0a-9a8e-3f3f0d8f6f11")
"""Namespace of task ids."""
MAX_CORRELATION_CHARS: Final = 255


class TableIdentity(Struct, frozen=True):
    """Which table."""

    table_entity_id: str
    """Stable id; of a table that is to be purged it also names the tombstone."""
    catalog_name: str
    namespace_levels: tuple[str, ...]
    table_name: str

    @property
    def path(self) -> tuple[str, ...]:
        """Namespace levels and the name."""
        return (*self.namespace_levels, self.table_name)


class Expected(Struct, frozen=True, rename="kebab"):
    """What the table must be, as far as the order says: compared before anything is touched."""

    location: str | None = None
    table_uuid: str | None = None
    format_version: int | None = None


class CommonPayload(Struct, frozen=True):
    """What all orders have."""

    operation_type: str
    realm_identifier: str
    request_timestamp_utc: str | None = None
    polaris_correlation_id: str | None = None
    traceparent: str | None = None
    """W3C trace context of whoever ordered it: one trace from the catalog to the job."""
    schedule: str | None = None
    """An ISO 8601 duration or a cron line: it is done again and again; left out: once."""


class OperationParameters(Struct, frozen=True):
    """What one kind of tasks needs."""

    table_identity: TableIdentity
    metadata_location: str | None = None
    metadata: Expected | None = None
    properties: dict[str, str] = field(default_factory=dict)
    """Instructions for this kind of tasks."""


class TaskPayload(Struct, frozen=True):
    """The body of a request for a task."""

    common_payload: CommonPayload
    operation_parameters: OperationParameters


class TaskOrder(Struct, frozen=True):
    """A task as it is kept: checked, in one spelling, without secrets."""

    task_type: TaskType
    realm: str
    correlation_id: str
    table: TableIdentity
    metadata_location: str | None = None
    expected: Expected = Expected()
    properties: dict[str, str] = field(default_factory=dict)
    requested_at: str | None = None
    traceparent: str | None = None
    schedule: str | None = None

    @property
    def task_id(self) -> str:
        """The same order has the same id, whoever sends it, however often."""
        return make_task_id(self.realm, self.correlation_id)

    @property
    def fingerprint(self) -> str:
        """The same for orders of the same thing. When it was asked for, and in which trace, no matter."""
        what = msgspec.structs.replace(self, requested_at=None, traceparent=None)
        return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()

    def to_payload(self) -> TaskPayload:
        """As it is sent."""
        return TaskPayload(
            CommonPayload(
                operation_type=self.task_type,
                realm_identifier=self.realm,
                request_timestamp_utc=self.requested_at,
                polaris_correlation_id=self.correlation_id,
                traceparent=self.traceparent,
                schedule=self.schedule,
            ),
            OperationParameters(
                table_identity=self.table,
                metadata_location=self.metadata_location,
                metadata=self.expected if self.expected != Expected() else None,
                properties=self.properties,
            ),
        )


def make_task_id(realm: str, correlation_id: str) -> str:
    """The id of the task with this correlation id."""
    return str(uuid.uuid5(_TASKS, f"{realm}\0{correlation_id}"))


def parse_order(payload: TaskPayload) -> TaskOrder:
    """An order as it is kept; `BadInput` names what is wrong with it.

    Without a correlation id every order is a task of its own.
    """
    common, parameters = payload.common_payload, payload.operation_parameters
    correlation_id = common.polaris_correlation_id
    if correlation_id is not None and not 0 < len(correlation_id) <= MAX_CORRELATION_CHARS:
        raise BadInput(
            "A correlation id has the wrong length",
            field="common_payload.polaris_correlation_id",
            fix=f"Use 1 to {MAX_CORRELATION_CHARS} characters.",
        )
    identity = parameters.table_identity
    for name, value in (
        ("table_entity_id", identity.table_entity_id),
        ("catalog_name", identity.catalog_name),
        ("namespace_levels", identity.namespace_levels),
        ("table_name", identity.table_name),
    ):
        if not value:
            raise BadInput(
                "The order does not say which table",
                field=f"operation_parameters.table_identity.{name}",
                fix="Name the table by its catalog, namespace, name and entity id.",
            )
    return TaskOrder(
        task_type=parse_task_type(common.operation_type),
        realm=common.realm_identifier,
        correlation_id=correlation_id or str(uuid.uuid4()),
        table=identity,
        metadata_location=parameters.metadata_location,
        expected=parameters.metadata or Expected(),
        properties=parameters.properties,
        requested_at=common.request_timestamp_utc,
        traceparent=common.traceparent,
        schedule=common.schedule,
    )


def decode_order(stored: str) -> TaskOrder:
    """An order as it was kept (`encode_order`)."""
    return msgspec.json.decode(stored, type=TaskOrder)


def encode_order(order: TaskOrder) -> str:
    """An order as it is kept."""
    return msgspec.json.encode(order).decode()


def as_flag(properties: dict[str, Any], name: str, *, default: bool = False) -> bool:
    """An instruction that is `true` or `false`; `BadInput` for anything else."""
    text = str(properties.get(name, default)).lower()
    if text not in ("true", "false"):
        raise BadInput(
            "An instruction is neither true nor false",
            field=f"operation_parameters.properties.{name}",
            fix="Use true or false.",
            value=text[:100],
        )
    return text == "true"
