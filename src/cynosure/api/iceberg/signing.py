"""Signatures for clients that have no credentials of their own.

Must not break: no answer may be kept. Iceberg's Java client reuses a signature that is marked as private, and
would go on with it after a right is taken away.
"""

from functools import partial
from typing import Final, Literal

from msgspec import Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.sign_request import sign_request
from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import StoreRequest

NOT_KEPT: Final = (b"cache-control", b"no-cache")


class RemoteSignRequest(Struct, frozen=True):
    """Body of signRequest."""

    region: str
    uri: str
    method: Literal["PUT", "GET", "HEAD", "POST", "DELETE", "PATCH", "OPTIONS"]
    headers: dict[str, list[str]]
    properties: dict[str, str] | None = None
    body: str | None = None
    provider: str | None = None


class RemoteSignResult(Struct, frozen=True):
    """Answer of signRequest."""

    uri: str
    headers: dict[str, list[str]]


def store_request_of(body: RemoteSignRequest) -> StoreRequest:
    """What a client wants signed."""
    if body.provider not in (None, "s3"):
        raise BadInput("Requests to this provider are not signed", field="provider", fix="Ask for s3.")
    return StoreRequest(body.method, body.uri, body.headers, body.region, body.body)


async def _sign(catalogs: Catalogs, request: Request) -> Response:
    caller = caller_of(request)
    table = table_of(request)
    wanted = store_request_of(request.body)
    signed = await sign_request(await catalog_of(catalogs, caller, request), caller, table, wanted)
    return Response.json(RemoteSignResult(signed.uri, dict(signed.headers)), headers=[NOT_KEPT])


def signing_routes(catalogs: Catalogs) -> list[Route]:
    """The route of signatures."""
    return [
        Route(
            "POST",
            f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/sign",
            partial(_sign, catalogs),
            operation_id="signRequest",
            changes_nothing=True,
            summary="Sign a request to object storage",
            tags=("iceberg",),
            request=RemoteSignRequest,
            responses={200: RemoteSignResult},
        )
    ]
