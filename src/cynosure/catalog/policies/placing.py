"""What a policy is attached to: by the names that a user says, and as the authorizer walks to it.

Must not break: the id that is stored is looked up in the state that the change is prepared on.
"""

from typing import Literal

from msgspec import Struct

from cynosure.catalog.names import Identifier, check_name, check_namespace, path_of
from cynosure.catalog.policies.mappings import THE_CATALOG, PolicyMapping, TargetKind
from cynosure.catalog.policies.types import Attachable
from cynosure.catalog.targets import CatalogTarget, NamespaceTarget, TableTarget
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import CatalogId, ObjId


class AttachTo(Struct, frozen=True):
    """Something in a catalog, or the catalog, by name."""

    type: Literal["catalog", "namespace", "table-like"]
    path: tuple[str, ...] = ()
    """Levels of the namespace and, for tables, the name."""

    def target(self, catalog: CatalogId, catalog_name: str) -> Attachable:
        """For the authorizer; `BadInput` for a path that cannot be one."""
        match self.type:
            case "catalog":
                if self.path:
                    raise BadInput(
                        "A catalog has no path in itself", field="target.path", fix="Leave the path out."
                    )
                return CatalogTarget(catalog, catalog_name)
            case "namespace":
                return NamespaceTarget(catalog, check_namespace(self.path, field="target.path"))
            case "table-like":
                if len(self.path) < 2:
                    raise BadInput(
                        "A table is in a namespace",
                        field="target.path",
                        fix="Give the levels of the namespace, then the table.",
                    )
                namespace = check_namespace(self.path[:-1], field="target.path")
                name = check_name(self.path[-1], field="target.path")
                return TableTarget(catalog, Identifier(namespace, name))


def kind_of(target: Attachable) -> TargetKind:
    """As it is stored."""
    match target:
        case CatalogTarget():
            return "catalog"
        case NamespaceTarget():
            return "namespace"
        case TableTarget():
            return "table"


async def load_target_id(view: View, target: Attachable) -> ObjId:
    """The stable id of a target; its error when there is none."""
    if isinstance(target, CatalogTarget):
        return THE_CATALOG
    return await target.load_id(view, await target.locate(view))


async def find_target_by_id(view: View, catalog: CatalogTarget, mapping: PolicyMapping) -> Attachable | None:
    """What a mapping is about, by the name it has now; `None` when it is dropped."""
    if mapping.target_id == THE_CATALOG:
        return catalog
    key = await view.find("ids", encode_id_key(mapping.target_id))
    if key is None:
        return None
    path = path_of(key)
    if mapping.target_kind == "namespace":
        return NamespaceTarget(catalog.catalog, path)
    return TableTarget(catalog.catalog, Identifier(path[:-1], path[-1]))
