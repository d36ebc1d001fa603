"""What the store holds of catalogs and namespaces. Tables and views are in `managed/`.

Must not break: a stored struct gets new fields with defaults only (`persistence.objects.Stored`).
"""

from msgspec import field

from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.storage.config import StorageConfig


class CatalogEntity(Stored, frozen=True):
    """A catalog, as its realm's list has it."""

    id: CatalogId
    """Stable; names its references and rows."""
    name: str
    base_location: str
    """Where tables go that ask for no location."""
    storage: StorageConfig
    created_us: int
    updated_us: int
    version: int = 1
    properties: dict[str, str] = field(default_factory=dict)


class NamespaceEntity(Stored, frozen=True):
    """A namespace. Its name is its index key."""

    id: ObjId
    """Stable: kept when the namespace's properties change."""
    created_us: int
    updated_us: int
    properties: dict[str, str] = field(default_factory=dict)


CATALOG = struct_type("catalog", CatalogEntity)
NAMESPACE = struct_type("namespace", NamespaceEntity)
