"""Bodies and queries of principals, roles and grants.

Must not break: names and shapes are those of the Polaris document, of which ours is a superset: more fields,
more that is optional, never less.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from cynosure.auth.rbac.privileges import GRANTABLE
from cynosure.persistence.listing import Paging

Name = Annotated[
    str,
    Meta(
        extra_json_schema={
            "minLength": 1,
            "maxLength": 256,
            "pattern": r"^(?!\s*[sS][yY][sS][tT][eE][mM]\$).*$",
        }
    ),
]
"""Described here, checked by the operations, which give better reasons."""
Properties = dict[str, str]


class Camel(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The spelling of this API."""


class ListQuery(Camel, frozen=True):
    """Paging of every list; without it all is answered."""

    page_token: str | UnsetType = UNSET
    page_size: Annotated[int, Meta(ge=1)] | UnsetType = UNSET

    def paging(self) -> Paging:
        """What the operations understand."""
        return Paging(
            token=None if self.page_token is UNSET else self.page_token,
            size=None if self.page_size is UNSET else self.page_size,
        )


class UpdateRequest(Camel, frozen=True):
    """Replaces all properties of a principal or role."""

    current_entity_version: int
    """Of the entity that the change is meant for; any other is a conflict."""
    properties: Properties


class UpdatePrincipalRequest(UpdateRequest, frozen=True):
    """Of updatePrincipal."""


class UpdatePrincipalRoleRequest(UpdateRequest, frozen=True):
    """Of updatePrincipalRole."""


class UpdateCatalogRoleRequest(UpdateRequest, frozen=True):
    """Of updateCatalogRole."""


class Principal(Camel, frozen=True, kw_only=True):
    """A person or service."""

    name: Name
    client_id: str | None = None
    """Output only: clients send their own with a request to create another principal. `resetCredentials` sets
    it."""
    properties: Properties | None = None
    create_timestamp: int | None = None
    last_update_timestamp: int | None = None
    """Milliseconds since the epoch, like all times here."""
    entity_version: int | None = None
    trusted_service: bool | None = None
    """Whether it may act on behalf of others. Output only: `setTrustedService` changes it."""
    credential_rotation_required: bool | None = None
    """Whether its secret is good for nothing but asking for another one. Output only."""


class Principals(Camel, frozen=True):
    """A list of principals."""

    principals: list[Principal]
    next_page_token: str | None = None


class CreatePrincipalRequest(Camel, frozen=True):
    """Of createPrincipal."""

    principal: Principal | None = None
    credential_rotation_required: bool | None = None


class ResetPrincipalRequest(Camel, frozen=True):
    """Of resetCredentials; what is left out is made anew, or for the client id stays."""

    client_id: str | None = None
    client_secret: Annotated[str, Meta(extra_json_schema={"format": "password"})] | None = None

    def __repr__(self) -> str:
        return "ResetPrincipalRequest(***)"


class Credentials(Camel, frozen=True):
    """What a principal proves itself with. Answered once and never again."""

    client_id: str
    client_secret: Annotated[str, Meta(extra_json_schema={"format": "password"})]

    def __repr__(self) -> str:
        return "Credentials(***)"


class PrincipalWithCredentials(Camel, frozen=True):
    """Answer of createPrincipal, rotateCredentials and resetCredentials."""

    principal: Principal
    credentials: Credentials


class PrincipalRole(Camel, frozen=True, kw_only=True):
    """A role that principals have."""

    name: Name
    federated: bool | None = None
    """Whether another issuer's tokens say who has it."""
    properties: Properties | None = None
    create_timestamp: int | None = None
    last_update_timestamp: int | None = None
    entity_version: int | None = None


class PrincipalRoles(Camel, frozen=True):
    """A list of principal roles."""

    roles: list[PrincipalRole]
    next_page_token: str | None = None


class CreatePrincipalRoleRequest(Camel, frozen=True):
    """Of createPrincipalRole."""

    principal_role: PrincipalRole | None = None


class GrantPrincipalRoleRequest(Camel, frozen=True):
    """Of assignPrincipalRole; only the name is looked at."""

    principal_role: PrincipalRole | None = None


class CatalogRole(Camel, frozen=True, kw_only=True):
    """A role inside one catalog."""

    name: Name
    properties: Properties | None = None
    create_timestamp: int | None = None
    last_update_timestamp: int | None = None
    entity_version: int | None = None


class CatalogRoles(Camel, frozen=True):
    """A list of catalog roles."""

    roles: list[CatalogRole]
    next_page_token: str | None = None


class CreateCatalogRoleRequest(Camel, frozen=True):
    """Of createCatalogRole."""

    catalog_role: CatalogRole | None = None


class GrantCatalogRoleRequest(Camel, frozen=True):
    """Of assignCatalogRoleToPrincipalRole; only the name is looked at."""

    catalog_role: CatalogRole | None = None


def _grantable(kind: str) -> Any:
    return Meta(extra_json_schema={"enum": [each.name for each in sorted(GRANTABLE[kind])]})


class CatalogGrant(Camel, frozen=True, tag_field="type", tag="catalog"):
    """A privilege on a catalog and all in it."""

    privilege: Annotated[str, _grantable("catalog")]


class NamespaceGrant(Camel, frozen=True, tag_field="type", tag="namespace"):
    """A privilege on a namespace and all in it."""

    namespace: list[str]
    privilege: Annotated[str, _grantable("namespace")]


class TableGrant(Camel, frozen=True, tag_field="type", tag="table"):
    """A privilege on a table."""

    namespace: list[str]
    table_name: str
    privilege: Annotated[str, _grantable("table")]


class ViewGrant(Camel, frozen=True, tag_field="type", tag="view"):
    """A privilege on a view."""

    namespace: list[str]
    view_name: str
    privilege: Annotated[str, _grantable("view")]


class PolicyGrant(Camel, frozen=True, tag_field="type", tag="policy"):
    """A privilege on a policy."""

    namespace: list[str]
    policy_name: str
    privilege: Annotated[str, _grantable("policy")]


GrantResource = CatalogGrant | NamespaceGrant | TableGrant | ViewGrant | PolicyGrant


class GrantResources(Camel, frozen=True):
    """The grants of a catalog role, one privilege each."""

    grants: list[GrantResource]
    next_page_token: str | None = None


class AddGrantRequest(Camel, frozen=True):
    """Of addGrantToCatalogRole."""

    grant: GrantResource | None = None


class RevokeGrantRequest(Camel, frozen=True):
    """Of revokeGrantFromCatalogRole."""

    grant: GrantResource | None = None


class RevokeGrantQuery(Camel, frozen=True):
    """Query of revokeGrantFromCatalogRole."""

    cascade: bool = False
