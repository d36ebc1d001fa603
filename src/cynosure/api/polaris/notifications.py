"""Notifications about the tables of external catalogs."""

from msgspec import UNSET, Struct, UnsetType

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.iceberg.wire import Document
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.notify import Notification, NotificationType, notify


class TableUpdateNotification(Struct, frozen=True, rename="kebab"):
    """What is told about a table."""

    table_name: str
    timestamp: int
    table_uuid: str
    metadata_location: str
    metadata: Document | UnsetType = UNSET
    """Taken and not read: the metadata file says what the table is."""


class NotificationRequest(Struct, frozen=True, rename="kebab"):
    """Body of sendNotification."""

    notification_type: NotificationType
    payload: TableUpdateNotification


def notification_routes(catalogs: Catalogs) -> list[Route]:
    """The route of notifications."""

    async def send(request: Request) -> Response:
        caller = caller_of(request)
        table = table_of(request)
        body: NotificationRequest = request.body
        told = Notification(
            type=body.notification_type,
            table_name=body.payload.table_name,
            timestamp=body.payload.timestamp,
            table_uuid=body.payload.table_uuid,
            metadata_location=body.payload.metadata_location,
        )
        await notify(await catalog_of(catalogs, caller, request), caller, table, told)
        return Response(204)

    return [
        Route(
            "POST",
            f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/notifications",
            send,
            operation_id="sendNotification",
            summary="Tell an external catalog that one of its tables was created, changed or dropped",
            tags=("polaris",),
            request=NotificationRequest,
            responses={204: None},
        )
    ]
