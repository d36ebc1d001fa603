"""The switch between a catalog that passes changes on and one that is only read."""

from cynosure.catalog.federated_properties import PREFIX
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.errors import ReadOnly
from cynosure.federation.policy import policy_of
from cynosure.federation.settings import FederationSettings


def require_writable(catalog: OpenCatalog, settings: FederationSettings) -> None:
    """Refuse a change to a catalog that is read-only, to whoever was allowed to make it."""
    if policy_of(catalog, settings).is_read_only:
        raise ReadOnly(
            catalog.entity.name,
            fix=f"Change it where it is owned, or have the catalog's property {PREFIX}read-only taken away.",
        )
