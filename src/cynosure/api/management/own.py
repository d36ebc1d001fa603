"""Who the caller is, and which services may act for others."""

from functools import partial

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire
from cynosure.api.management.context import BASE, name_of
from cynosure.api.management.principals import describe_principal
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.identities import Identities
from cynosure.auth.operations.set_trusted_service import set_trusted_service


class TrustedServiceRequest(wire.Camel, frozen=True):
    """Whether a principal may act on behalf of others."""

    trusted: bool


class WhoAmI(wire.Camel, frozen=True):
    """The caller as this server sees it."""

    realm: str
    principal: str
    roles: tuple[str, ...]
    """The principal roles that are active."""
    actor: str | None = None
    """The service that acts for the principal."""


class OwnHandlers:
    """The handlers of callers and trusted services."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def who_am_i(self, request: Request) -> Response:
        """The caller."""
        caller = caller_of(request)
        return Response.json(WhoAmI(caller.realm, caller.principal, caller.roles, caller.actor or None))

    async def trust(self, request: Request) -> Response:
        """Let a principal act on behalf of others, or no longer."""
        body: TrustedServiceRequest = request.body
        entity = await set_trusted_service(
            self._identities,
            caller_of(request),
            name_of(request, "principalName"),
            is_trusted=body.trusted,
        )
        return Response.json(describe_principal(entity))


def own_routes(identities: Identities) -> list[Route]:
    """The routes of callers and trusted services."""
    handlers = OwnHandlers(identities)
    route = partial(Route, tags=("cynosure",))
    return [
        route(
            "GET",
            f"{BASE}/cynosure/realm",
            handlers.who_am_i,
            operation_id="whoAmI",
            summary="The realm, the principal and the active roles of the caller",
            responses={200: WhoAmI},
        ),
        route(
            "PUT",
            f"{BASE}/cynosure/principals/{{principalName}}/trusted-service",
            handlers.trust,
            operation_id="setTrustedService",
            summary="Let a principal act on behalf of others, or no longer",
            request=TrustedServiceRequest,
            responses={200: wire.Principal},
        ),
    ]
