"""What a grant is on: by the names that a user says, and by the stable id that is stored.

Must not break: the id is looked up in the state of `main` that the change is guarded by.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from cynosure.auth.ports import Target
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.privileges import GRANTABLE, Privilege
from cynosure.catalog.names import Identifier, Namespace, is_namespace_key, path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.targets import InCatalog
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId

SecurableKind = Literal["catalog", "namespace", "table", "view", "policy"]
_KINDS: Final[Mapping[bytes, SecurableKind]] = MappingProxyType({b"v": "view", b"p": "policy"})
"""By the first letter of the key; all else that is not a namespace is a table of some kind."""


class Grant(Struct, frozen=True):
    """One privilege on one thing in a catalog."""

    kind: SecurableKind
    privilege: Privilege
    namespace: Namespace = ()
    """Of a namespace itself, of all else the one it is in; empty for the catalog."""
    name: str = ""
    """Of a table, view or policy."""

    @property
    def on(self) -> str:
        """As messages and events name it."""
        return ".".join((*self.namespace, self.name) if self.name else self.namespace)


def check_grantable(grant: Grant) -> None:
    """Refuse privileges that mean nothing on such a thing."""
    possible = GRANTABLE[grant.kind]
    if grant.privilege not in possible:
        raise BadInput(
            "The privilege cannot be granted on this kind of thing",
            field="privilege",
            fix=f"Choose one of {', '.join(sorted(each.name for each in possible))}.",
            privilege=grant.privilege.name,
            kind=grant.kind,
        )


def target_of(catalog: OpenCatalog, grant: Grant) -> Target:
    """What the grant is on, for the authorizer."""
    match grant.kind:
        case "catalog":
            return catalog.target()
        case "namespace":
            return catalog.namespace(grant.namespace)
        case "table":
            return catalog.any_table(Identifier(grant.namespace, grant.name))
        case "view":
            return catalog.view(Identifier(grant.namespace, grant.name))
        case "policy":
            return catalog.policy(Identifier(grant.namespace, grant.name))


async def load_securable_id(main: View, target: Target) -> ObjId:
    """The stable id of what is granted on; its error when there is none."""
    if isinstance(target, InCatalog):
        return await target.load_id(main, await target.locate(main))
    return THE_CATALOG


def describe(key: bytes | None, privileges: Sequence[Privilege]) -> list[Grant]:
    """Grants on what has this key in `names`; on the catalog when there is none."""
    if key is None:
        return [Grant("catalog", each) for each in privileges]
    path = path_of(key)
    if is_namespace_key(key):
        return [Grant("namespace", each, path) for each in privileges]
    kind = _KINDS.get(key[:1], "table")
    return [Grant(kind, each, path[:-1], path[-1]) for each in privileges]
