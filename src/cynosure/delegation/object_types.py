"""Every object type this room stores: the one list, found by entry point.

A maintainer must not break: a type that is missing here is kept by garbage collection and export, but `store
check` cannot read it.
"""

from typing import Any

from cynosure.delegation.store.stored import DELEGATED_TASK
from cynosure.persistence.objects import ObjectType

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (DELEGATED_TASK,)
