"""All routes of the Iceberg REST protocol, and our own beside them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.commits import commit_routes
from cynosure.api.iceberg.config import config_route
from cynosure.api.iceberg.credentials import credential_routes
from cynosure.api.iceberg.namespaces import namespace_routes
from cynosure.api.iceberg.plans import plan_routes
from cynosure.api.iceberg.reports import report_routes
from cynosure.api.iceberg.signing import signing_routes
from cynosure.api.iceberg.tables import table_routes
from cynosure.api.iceberg.views import view_routes
from cynosure.api.router import Route

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def iceberg_routes(
    catalogs: Catalogs, beside: Sequence[Route] = (), *, advertised: Mapping[str, str] = _NOTHING
) -> list[Route]:
    """The routes that serve these catalogs.

    `beside` are routes served elsewhere that its clients are told of as well; `advertised` is what they are
    told that the server can do.
    """
    served = [
        *namespace_routes(catalogs),
        *table_routes(catalogs),
        *credential_routes(catalogs),
        *signing_routes(catalogs),
        *commit_routes(catalogs),
        *plan_routes(catalogs),
        *view_routes(catalogs),
        *report_routes(catalogs),
    ]
    return [config_route(catalogs, [*served, *beside], advertised), *served]
