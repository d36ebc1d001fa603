"""Which references there are, which indexes each holds, and how one begins.

| scope         | reference    | holds                                                            |
|---------------|--------------|------------------------------------------------------------------|
| system        | `realms`     | the realms of this store                                         |
| a realm       | `catalogs`   | catalogs with their allowed and base locations                   |
| a realm       | `principals` | principals, principal roles, assignments                         |
| a realm       | `settings`   | settings of the realm: the keys that sign its tokens             |
| a realm       | `audit`      | what was done and what was refused, kept longer than the history |
| a realm       | `tasks`      | delegated tasks, leases and receipts: `delegation/store/`        |
| a catalog     | `main`       | namespaces, tables, views, policies and their mappings           |
| a catalog     | `grants`     | catalog roles, who has them, what they may: apart, so that they  |
|               |              | do not contend with table commits                                |
| a catalog     | `reports`    | metrics reports of clients, and what was done to keep tables in  |
|               |              | shape: apart for the same reason                                 |

Index names mean the same everywhere: `names` (name to object), `ids` (stable id to name), `locations`
(location to stable id), `dropped` (what can still be restored), `mappings` (which policy is attached to
what), `staged` (locations promised to tables that are being created), `notified` (when the owner of an
external table last told about it), `purges` (dropped tables whose files are to go), `marks` (that a realm is
being deleted), `moving` (how far a federated catalog is on its way to us), `ceded` (places that a catalog
gave to another one), `adopting` (what is on its way into a catalog from another). An update touches one
index, a rename two, a create three, a drop four.

Must not break: a reference begins at `NO_COMMIT`, the empty state, which is no object. A first commit
object written before its reference could be collected while nothing points to it.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from cynosure.common.clock import Clock
from cynosure.persistence.commit.records import NO_COMMIT, Holds
from cynosure.persistence.spi import (
    REALM_SCOPE,
    SYSTEM_REALM,
    Backend,
    CatalogId,
    RealmId,
    Reference,
    RefKey,
)

DEFAULT_REALM = RealmId("default")

_NAMED: Mapping[str, Holds] = MappingProxyType({"names": "objects", "ids": "bytes", "locations": "bytes"})

INDEXES: Mapping[str, Mapping[str, Holds]] = MappingProxyType(
    {
        "realms": MappingProxyType({"names": "objects"}),
        "catalogs": MappingProxyType({**_NAMED, "marks": "bytes", "ceded": "bytes"}),
        "principals": MappingProxyType(
            {"names": "objects", "ids": "bytes", "clients": "bytes", "assignments": "bytes", "marks": "bytes"}
        ),
        "settings": MappingProxyType({"names": "objects"}),
        "audit": MappingProxyType({"events": "objects", "positions": "bytes"}),
        "tasks": MappingProxyType(
            {
                "current": "objects",
                "history": "objects",
                "created": "bytes",
                "children": "bytes",
                "due": "bytes",
                "leases": "bytes",
                "ended": "bytes",
                "receipts": "bytes",
                "progress": "bytes",
            }
        ),
        "main": MappingProxyType(
            {
                **_NAMED,
                "dropped": "objects",
                "mappings": "objects",
                "staged": "objects",
                "notified": "bytes",
                "remote": "bytes",
                "purges": "objects",
                "asked": "bytes",
                "moving": "bytes",
                "ceded": "bytes",
                "adopting": "bytes",
            }
        ),
        "grants": MappingProxyType(
            {"names": "objects", "ids": "bytes", "assignments": "bytes", "grants": "bytes"}
        ),
        "reports": MappingProxyType({"reports": "objects", "upkeep": "objects"}),
    }
)
"""Per reference name, its indexes. A later version may add one: it is empty in older commits."""

REALM_REFERENCES = ("catalogs", "principals", "settings", "audit", "tasks")
CATALOG_REFERENCES = ("main", "grants", "reports")

REALMS = RefKey(SYSTEM_REALM, REALM_SCOPE, "realms")


@lru_cache(maxsize=1024)  # Asked for several times by every request; strangers may name any realm.
def realm_reference(realm: RealmId, name: str) -> RefKey:
    """Key of a realm's own reference."""
    return RefKey(realm, REALM_SCOPE, name)


def catalog_reference(realm: RealmId, catalog: CatalogId, name: str) -> RefKey:
    """Key of a catalog's reference."""
    return RefKey(realm, catalog, name)


def target_of(key: RefKey) -> str:
    """How operators name a reference: `REALM/REFERENCE` or `REALM/CATALOG/REFERENCE`."""
    return f"{key.realm}/{key.name}" if key.catalog == REALM_SCOPE else "/".join(key)


async def ensure_reference(backend: Backend, key: RefKey, clock: Clock, *, generation: int = 0) -> bool:
    """Create a reference in its empty state. `False` when it existed already."""
    return await backend.insert_ref(Reference(key, NO_COMMIT, generation, (), clock.now_us()))
