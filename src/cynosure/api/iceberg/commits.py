"""Commits of the Iceberg REST protocol: to one table, and to several at once.

Must not break: a change that cannot be read is refused before anything is resolved, so nothing is written.
"""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, open_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.table_changes import TableChange
from cynosure.iceberg.requirements import TableRequirement
from cynosure.iceberg.updates import TableUpdate


class CommitTableRequest(Struct, frozen=True):
    """Body of updateTable."""

    requirements: list[TableRequirement]
    updates: list[TableUpdate]
    identifier: wire.TableIdentifier | None = None
    """The path decides; clients may repeat it here."""


class TransactionChange(Struct, frozen=True):
    """One table's part of a transaction."""

    identifier: wire.TableIdentifier
    requirements: list[TableRequirement]
    updates: list[TableUpdate]


class CommitTransactionRequest(Struct, frozen=True, rename="kebab"):
    """Body of commitTransaction."""

    table_changes: Annotated[list[TransactionChange], Meta(min_length=1)]


class CommitHandlers:
    """The handlers of commits."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def commit(self, request: Request) -> Response:
        """Commit to one table."""
        caller = caller_of(request)
        body: CommitTableRequest = request.body
        change = TableChange(table_of(request), body.requirements, body.updates)
        catalog = await open_of(self._catalogs, caller, request)
        answer = await self._catalogs.operations_of(catalog).commit_table(catalog, caller, change)
        headers = [] if answer.etag is None else [(b"etag", answer.etag)]
        return Response(200, answer.commit_body(), headers=headers)

    async def commit_all(self, request: Request) -> Response:
        """Commit to several tables, or to none."""
        caller = caller_of(request)
        body: CommitTransactionRequest = request.body
        changes = [
            TableChange(
                change.identifier.checked(f"table-changes[{at}].identifier"),
                change.requirements,
                change.updates,
            )
            for at, change in enumerate(body.table_changes)
        ]
        catalog = await open_of(self._catalogs, caller, request)
        await self._catalogs.operations_of(catalog).commit_transaction(catalog, caller, changes)
        return Response(204)


def commit_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of commits."""
    handlers = CommitHandlers(catalogs)
    route = partial(Route, tags=("iceberg",))
    return [
        route(
            "POST",
            f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}",
            handlers.commit,
            operation_id="updateTable",
            is_commit=True,
            summary="Commit updates to a table",
            request=CommitTableRequest,
            responses={200: wire.CommitTableResponse},
        ),
        route(
            "POST",
            f"{BASE}/v1/{{prefix}}/transactions/commit",
            handlers.commit_all,
            operation_id="commitTransaction",
            is_commit=True,
            summary="Commit updates to several tables, all or none",
            request=CommitTransactionRequest,
            responses={204: None},
        ),
    ]
