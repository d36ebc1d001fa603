"""Every object type this room stores: the one list, found by entry point."""

from typing import Any

from cynosure.auth.audit.events import EVENT_BATCH
from cynosure.auth.audit.sink import SINK_POSITION
from cynosure.auth.entities import CATALOG_ROLE, PRINCIPAL, PRINCIPAL_ROLE
from cynosure.auth.tokens.signing_keys import SIGNING_KEYS
from cynosure.persistence.objects import ObjectType

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (
    PRINCIPAL,
    PRINCIPAL_ROLE,
    CATALOG_ROLE,
    SIGNING_KEYS,
    EVENT_BATCH,
    SINK_POSITION,
)
