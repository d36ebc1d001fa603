"""What a client asks first: how to speak to a catalog, and what is served.

Must not break: `endpoints` is made from the routes themselves, so it names exactly what is served.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from msgspec import UNSET

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.context import caller_of
from cynosure.api.iceberg.wire import CatalogConfig, ConfigQuery
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.load_config import load_config
from cynosure.common.errors import BadInput

BASE: Final = "/api/catalog"
"""What clients are given as `uri` ends here; the protocol's own paths begin with `/v1`."""

_GENERIC_TABLES: Final = "/generic-tables"


def config_route(catalogs: Catalogs, served: Iterable[Route], advertised: Mapping[str, str]) -> Route:
    """`GET /v1/config`, advertising the routes that are served beside it, and what the server can do."""
    properties = dict(advertised)
    lifetime = properties.get("idempotency-key-lifetime", UNSET)
    scopes = (f"{BASE}/v1/{{prefix}}/", f"{BASE}/polaris/v1/{{prefix}}/")
    endpoints: list[str] = []
    for route in served:
        if route.path.startswith(scopes):
            path = route.path.removeprefix(BASE)
            endpoints.append(f"{route.method} {path}")
            if _GENERIC_TABLES in path:
                # Polaris' client for Spark compares these texts, and its own have no slash in front.
                endpoints.append(f"{route.method} {path.removeprefix('/')}")

    async def get_config(request: Request) -> Response:
        caller = caller_of(request)
        if not request.query.warehouse:
            raise BadInput(
                "No warehouse is named", field="warehouse", fix="Send the catalog's name as ?warehouse=NAME."
            )
        name: str = request.query.warehouse
        return Response.json(
            CatalogConfig(
                # What a catalog's own properties say of the server does not count.
                defaults={**await load_config(catalogs.directory, caller, name), **properties},
                # Clients put the prefix into their paths as it is, so it is encoded here.
                overrides={"prefix": quote(name, safe="")},
                endpoints=endpoints,
                properties=properties,
                idempotency_key_lifetime=lifetime,
            )
        )

    return Route(
        "GET",
        f"{BASE}/v1/config",
        get_config,
        operation_id="getConfig",
        summary="How to speak to a catalog, and what is served",
        tags=("iceberg",),
        query=ConfigQuery,
        responses={200: CatalogConfig},
    )
