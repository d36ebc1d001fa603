"""What the store holds of principals and roles.

Principals and principal roles are in a realm's `principals`, catalog roles in their catalog's `grants`:

| reference    | index         | key                                        | value                     |
|--------------|---------------|--------------------------------------------|---------------------------|
| `principals` | `names`       | `p NAME`, `r NAME`                         | principal, principal role |
|              | `ids`         | id                                         | key in `names`            |
|              | `clients`     | client id                                  | key in `names`            |
|              | `assignments` | `p` principal role, `r` role principal     | empty                     |
| `grants`     | `names`       | NAME                                       | catalog role              |
|              | `ids`         | id                                         | key in `names`            |
|              | `assignments` | `u` principal role · catalog role, `a` the other way round | empty     |
|              | `grants`      | `s` securable · role, `r` role · securable | privileges (`rbac/grants.py`) |

Must not break: a stored struct gets new fields with defaults only. Ids are never used again, so an entry that
names a thing that is gone grants nothing, and may be removed at leisure.
"""

from msgspec import field

from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId


class StoredSecret(Stored, frozen=True):
    """What is kept of a client secret: enough to recognise it, not to know it (`secret_hash.py`)."""

    generation: int
    """Counts the secrets of a principal. Tokens name the one they were obtained with."""
    salt: bytes
    digest: bytes
    key: str
    """Which pepper went into the digest: id of the master key, and a mark by which it is recognised."""


class PrincipalEntity(Stored, frozen=True):
    """A person or service."""

    id: ObjId
    """Stable. A principal of the same name that is created later has another one."""
    name: str
    client_id: str
    created_us: int
    updated_us: int
    version: int = 1
    properties: dict[str, str] = field(default_factory=dict)
    secrets: tuple[StoredSecret, ...] = ()
    """Those that are valid, newest first: at most two, so that a rotation breaks nobody."""
    is_rotation_required: bool = False
    """Its secret is only good for asking for another one."""
    is_trusted_service: bool = False
    """May act on behalf of others."""
    subject: str = ""
    """`ISSUER SUBJECT` of the other issuer's account that it was made for."""


class PrincipalRoleEntity(Stored, frozen=True):
    """A role that principals have."""

    id: ObjId
    name: str
    created_us: int
    updated_us: int
    version: int = 1
    properties: dict[str, str] = field(default_factory=dict)
    is_federated: bool = False
    """Who has it is said by another issuer's tokens, not by assignments."""
    realm_privileges: bytes = b""
    """Privileges on the realm itself (`rbac/grants.py` packs them). Only built-in roles have any."""


class CatalogRoleEntity(Stored, frozen=True):
    """A role inside one catalog: what privileges are granted to."""

    id: ObjId
    name: str
    created_us: int
    updated_us: int
    version: int = 1
    properties: dict[str, str] = field(default_factory=dict)


PRINCIPAL = struct_type("principal", PrincipalEntity)
PRINCIPAL_ROLE = struct_type("principal-role", PrincipalRoleEntity)
CATALOG_ROLE = struct_type("catalog-role", CatalogRoleEntity)

ROOT = "root"
"""The first principal of every realm."""
SERVICE_ADMIN = "service_admin"
"""The principal role that manages a realm."""
CATALOG_ADMIN = "catalog_admin"
"""The catalog role that every catalog begins with."""
