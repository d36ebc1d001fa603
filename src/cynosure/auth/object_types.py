"""Every object type this room stores: the one list, found by entry point."""

from typing import Any

from cynosure.auth.entities import CATALOG_ROLE, PRINCIPAL, PRINCIPAL_ROLE
from cynosure.persistence.objects import ObjectType

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (PRINCIPAL, PRINCIPAL_ROLE, CATALOG_ROLE)
