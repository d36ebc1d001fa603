"""Newer credentials for a table's files."""

from functools import partial

from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access import encode_credentials
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.load_credentials import load_credentials


async def _load(directory: Directory, request: Request) -> Response:
    caller = caller_of(request)
    table = table_of(request)
    catalog = await catalog_of(directory, caller, request)
    vended = await load_credentials(catalog, caller, table)
    return Response(200, encode_credentials(vended), headers=[NO_STORE])


def credential_routes(directory: Directory) -> list[Route]:
    """The route of credentials."""
    return [
        Route(
            "GET",
            f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/credentials",
            partial(_load, directory),
            operation_id="loadCredentials",
            summary="Credentials for the files of a table",
            tags=("iceberg",),
            query=wire.CredentialsQuery,
            responses={200: wire.LoadCredentialsResponse},
        )
    ]
