"""Newer credentials for a table's files."""

from functools import partial

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access import encode_credentials
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.catalog.operations.load_table import load_table_for_data


async def _load(catalogs: Catalogs, request: Request) -> Response:
    caller = caller_of(request)
    table = table_of(request)
    catalog = await catalog_of(catalogs, caller, request)
    vended = await load_credentials(catalog, caller, table)
    if catalog.is_federated and vended is None:
        loaded = await load_table_for_data(catalog, caller, table)
        if loaded.is_writable:
            vended = (await catalogs.federation.give_access(catalog, table, loaded.access)).vended
    return Response(200, encode_credentials(vended), headers=[NO_STORE])


def credential_routes(catalogs: Catalogs) -> list[Route]:
    """The route of credentials."""
    return [
        Route(
            "GET",
            f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/credentials",
            partial(_load, catalogs),
            operation_id="loadCredentials",
            summary="Credentials for the files of a table",
            tags=("iceberg",),
            query=wire.CredentialsQuery,
            responses={200: wire.LoadCredentialsResponse},
        )
    ]
