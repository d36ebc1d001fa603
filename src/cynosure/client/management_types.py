"""What the management API sends and takes, as far as clients of ours look at it.

Must not break: unknown fields are skipped, so that a client reads the answers of a newer server.
"""

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["catalog", "namespace", "table", "view", "policy"]


class Entity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What all of them have."""

    name: str
    properties: dict[str, str] = {}
    entity_version: int = 0
    create_timestamp: int = 0
    """Milliseconds since 1970."""
    last_update_timestamp: int = 0


class Catalog(Entity, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A catalog."""

    type: str = "INTERNAL"
    storage_config_info: dict[str, Any] = {}
    connection_config_info: dict[str, Any] = {}
    """The remote behind a federated catalog, without secrets; empty for any other."""

    @property
    def base_location(self) -> str:
        """Where new tables go."""
        return self.properties.get("default-base-location", "")

    @property
    def storage_type(self) -> str:
        """`FILE` or `S3`."""
        return str(self.storage_config_info.get("storageType", ""))

    @property
    def allowed_locations(self) -> list[str]:
        """Every place where tables may be."""
        return list(self.storage_config_info.get("allowedLocations") or ())


class Principal(Entity, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A person or service."""

    client_id: str = ""
    trusted_service: bool = False
    """Whether it may act on behalf of others."""
    credential_rotation_required: bool = False
    """Whether its secret is good for nothing but asking for another one."""


class PrincipalRole(Entity, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A role that principals have."""

    federated: bool = False


class CatalogRole(Entity, frozen=True, rename="camel", omit_defaults=True):
    """A role inside one catalog."""


class Credentials(Struct, frozen=True, rename="camel"):
    """A client id and its secret, as they are shown once."""

    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return "Credentials(***)"


class PrincipalWithCredentials(Struct, frozen=True, rename="camel"):
    """The answer to what makes a secret."""

    principal: Principal
    credentials: Credentials


class Grant(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A privilege on one thing in a catalog."""

    type: Kind
    privilege: str
    namespace: tuple[str, ...] = ()
    table_name: str = ""
    view_name: str = ""
    policy_name: str = ""

    @property
    def name(self) -> str:
        """Name of the table, view or policy; empty for catalogs and namespaces."""
        return self.table_name or self.view_name or self.policy_name


def make_grant(kind: Kind, privilege: str, namespace: tuple[str, ...] = (), name: str = "") -> Grant:
    """A grant on a thing of this kind."""
    return Grant(
        kind,
        privilege,
        namespace,
        table_name=name if kind == "table" else "",
        view_name=name if kind == "view" else "",
        policy_name=name if kind == "policy" else "",
    )
