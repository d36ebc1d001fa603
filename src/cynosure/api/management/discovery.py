"""What this API can do beside what its document says: the config of a catalog, for requests to none.

Must not break: it says of this API what `GET /v1/config` says of a catalog, in the same words.
"""

from collections.abc import Mapping

from msgspec import Struct

from cynosure.api.management.context import BASE
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route


class ManagementConfig(Struct, frozen=True):
    """What clients may rely on."""

    properties: dict[str, str]
    """`idempotency-key-supported` and `idempotency-key-lifetime`, where an Idempotency-Key is honoured."""


def discovery_routes(advertised: Mapping[str, str]) -> list[Route]:
    """The route that tells what is advertised."""
    config = ManagementConfig(dict(advertised))

    async def get_config(_: Request) -> Response:
        return Response.json(config)

    return [
        Route(
            "GET",
            f"{BASE}/cynosure/config",
            get_config,
            operation_id="getManagementConfig",
            summary="What clients of this API may rely on: Idempotency-Keys, and for how long",
            tags=("cynosure",),
            responses={200: ManagementConfig},
        )
    ]
