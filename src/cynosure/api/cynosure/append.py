"""Append files that are written already: the table chooses ids and numbers, so appends never conflict."""

from typing import Any

from msgspec import Struct, field

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.operations.append_files import append_files
from cynosure.iceberg.snapshots import MAIN


class AppendRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Body of appendFiles."""

    data_files: list[dict[str, Any]] = field(default_factory=list)
    """Content files, as the Iceberg REST specification defines them in scan tasks."""
    manifests: list[str] = field(default_factory=list)
    """Locations of manifests with added data files, in place of `data-files` or besides them."""
    branch: str = MAIN
    summary: dict[str, str] = field(default_factory=dict)
    """Further entries for the summary of the snapshot."""
    table_uuid: str | None = None
    """If given, it must be this very table."""


class AppendHandlers:
    """The handler of appends."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def append(self, request: Request) -> Response:
        """Append files to a branch."""
        caller = caller_of(request)
        body: AppendRequest = request.body
        table = table_of(request)
        addition = Addition(
            data_files=body.data_files,
            manifests=body.manifests,
            branch=body.branch,
            summary=body.summary,
            table_uuid=body.table_uuid,
        )
        catalog = await catalog_of(self._catalogs, caller, request)
        return Response.json(await append_files(catalog, caller, table, addition))


def append_routes(catalogs: Catalogs) -> list[Route]:
    """The route of appends."""
    return [
        Route(
            "POST",
            f"{BASE}/cynosure/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/append",
            AppendHandlers(catalogs).append,
            operation_id="appendFiles",
            summary="Append data files to a table; the table gives snapshot and manifests their ids",
            tags=("cynosure",),
            request=AppendRequest,
            responses={200: Appended},
            is_commit=True,
        )
    ]
