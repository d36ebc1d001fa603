"""Every object type this room stores: the one list, found by entry point."""

from typing import Any

from cynosure.idempotency.record import PART, RECORD
from cynosure.persistence.objects import ObjectType

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (RECORD, PART)
