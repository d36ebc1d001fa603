"""Every object type this room stores: the one list, found by entry point.

A maintainer must not break: a type that is missing here is kept by garbage collection and export, but `store
check` cannot read it.
"""

from typing import Any

from cynosure.catalog.closing import CLOSING_MARK
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.entities import CATALOG, GENERIC_TABLE, NAMESPACE, POLICY, TABLE_FACADE
from cynosure.catalog.managed.state import CHUNK, POINTER, SCHEMA, TABLE
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.planning.stored import PLAN_END, SCAN_PLAN
from cynosure.catalog.policies.mappings import POLICY_MAPPING
from cynosure.catalog.purging.tombstone import TOMBSTONE
from cynosure.catalog.reports import METRICS_REPORT
from cynosure.catalog.staged import STAGED
from cynosure.catalog.upkeep.runs import UPKEEP
from cynosure.persistence.objects import ObjectType

OBJECT_TYPES: tuple[ObjectType[Any], ...] = (
    CATALOG,
    CLOSING_MARK,
    NAMESPACE,
    POLICY,
    POLICY_MAPPING,
    DROPPED,
    TABLE,
    POINTER,
    SCHEMA,
    CHUNK,
    VIEW,
    GENERIC_TABLE,
    TABLE_FACADE,
    METRICS_REPORT,
    STAGED,
    SCAN_PLAN,
    PLAN_END,
    TOMBSTONE,
    UPKEEP,
)

RESERVED: frozenset[str] = frozenset({"manifest-list", "manifest"})
"""Names kept free for objects derived from a table's manifests, stored under the id of what they describe."""
