"""How the remote of one catalog is treated: its own properties, and the server's settings for the rest."""

from datetime import timedelta

from msgspec import Struct

from cynosure.catalog.federated_properties import Credentials, Grants, read_federated_properties
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.settings import FederationSettings


class CatalogPolicy(Struct, frozen=True, kw_only=True):
    """What counts for one federated catalog."""

    max_staleness: timedelta
    """How long what was seen counts without asking again."""
    stale_if_down: timedelta
    """How old what was seen may be to be shown while the remote does not answer."""
    is_read_only: bool
    """Whether changes are refused instead of being passed on."""
    credentials: Credentials
    grants: Grants


def policy_of(catalog: OpenCatalog, settings: FederationSettings) -> CatalogPolicy:
    """What counts for this catalog. Properties were checked when they were set, so this does not fail."""
    own = read_federated_properties(catalog.entity.properties)
    return CatalogPolicy(
        max_staleness=settings.max_staleness if own.max_staleness is None else own.max_staleness,
        stale_if_down=settings.stale_if_down if own.stale_if_down is None else own.stale_if_down,
        is_read_only=bool(own.read_only),
        credentials=own.credentials or settings.credentials,
        grants=own.grants or settings.grants,
    )
