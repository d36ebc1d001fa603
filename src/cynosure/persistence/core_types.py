"""The object types of this room, and how installed packages add theirs."""

from typing import Any

from cynosure.common.errors import Misconfigured
from cynosure.persistence.commit import COMMIT
from cynosure.persistence.commit.key_log import KEY_RUN
from cynosure.persistence.gc.doomed import DOOMED
from cynosure.persistence.gc.pins import PIN
from cynosure.persistence.ids import NODE_LEASE
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.installed import list_offers
from cynosure.persistence.objects import ObjectType, TypeRegistry
from cynosure.persistence.scopes import REALM_ENTRY
from cynosure.persistence.store_info import STORE_INFO
from cynosure.persistence.tasks import TASK

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (
    COMMIT,
    DOOMED,
    INDEX_NODE,
    KEY_RUN,
    NODE_LEASE,
    PIN,
    REALM_ENTRY,
    STORE_INFO,
    TASK,
)

TYPES_GROUP = "cynosure.object_types"
"""Entry-point group; an entry names a sequence of `ObjectType`s."""


def load_types() -> TypeRegistry:
    """Every object type that an installed package offers."""
    types: list[ObjectType[Any]] = []
    for entry in {entry.value: entry for entry in list_offers(TYPES_GROUP)}.values():
        try:
            types += entry.load()
        except (ImportError, AttributeError) as error:
            raise Misconfigured(
                "An installed package's object types cannot be loaded",
                fix="Install it again with everything it needs, or remove it.",
                package=entry.dist.name if entry.dist else entry.module,
                reason=str(error),
            ) from error
    return TypeRegistry(types)
