"""What the store holds of catalogs, namespaces, generic tables and policies. Tables and views: `managed/`.

Must not break: a stored struct gets new fields with defaults only (`persistence.objects.Stored`).
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from cynosure.catalog.connection import Connection
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.storage.config import StorageConfig

CatalogKind = Literal["INTERNAL", "EXTERNAL"]
"""`EXTERNAL`: another catalog owns its tables. With a connection it is asked about them (a federated catalog,
`cynosure.federation`), without one it tells about them (`catalog.facade`)."""


class KeptLocation(Struct, frozen=True, array_like=True):
    """A location that a catalog may not use any more and still holds."""

    location: str
    since_us: int
    """When it was taken from the catalog."""


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
    kind: CatalogKind = "INTERNAL"
    kept: tuple[KeptLocation, ...] = ()
    """Not for other catalogs yet: tables may be there, or somebody may still have credentials."""
    connected_to: Connection | UnsetType = field(default=UNSET, name="connection")
    """As it is stored: not at all where there is none, so that other catalogs' bytes are as they were."""

    @property
    def connection(self) -> Connection | None:
        """How the remote behind a federated catalog is reached; `None`: the catalog has none."""
        return None if self.connected_to is UNSET else self.connected_to


class NamespaceEntity(Stored, frozen=True):
    """A namespace. Its name is its index key."""

    id: ObjId
    """Stable: kept when the namespace's properties change."""
    created_us: int
    updated_us: int
    properties: dict[str, str] = field(default_factory=dict)


class GenericTableEntity(Stored, frozen=True):
    """A generic table. Its name is its index key, and it never changes."""

    id: ObjId
    """Stable: kept by undrop. Also the id of the object itself, because there is only one version."""
    format: str
    """As its creator calls it: `delta`, `csv` …"""
    created_us: int
    location: str = ""
    """Its base location, which holds all of its files; empty when its users keep track of that themselves."""
    doc: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


class TableFacade(Stored, frozen=True):
    """A name at a remote on which something is granted, whatever table will have it."""

    id: ObjId
    """Stable: the table takes it when it is seen, and leaves it when it goes."""
    created_us: int


class PolicyEntity(Stored, frozen=True):
    """A policy. Its name is its index key; what it is attached to is in the index `mappings`."""

    id: ObjId
    """Stable: kept when the policy changes; mappings and grants name it."""
    type: str
    """Never changes: who may manage a policy depends on it."""
    created_us: int
    updated_us: int
    content: str | None = None
    description: str | None = None
    version: int = 0
    """Of what it says; grows by one with every change."""
    created_by: str = ""


CATALOG = struct_type("catalog", CatalogEntity, version=3)
NAMESPACE = struct_type("namespace", NamespaceEntity)
TABLE_FACADE = struct_type("table-facade", TableFacade)
GENERIC_TABLE = struct_type("generic-table", GenericTableEntity)
POLICY = struct_type("policy", PolicyEntity)
