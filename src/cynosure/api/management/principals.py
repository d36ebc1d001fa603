"""Principals: who they are, and what they prove it with."""

from functools import partial

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire
from cynosure.api.management.context import BASE, name_of, required, to_ms
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.auth.credentials import PrincipalWithCredentials
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.list_principals import list_principals
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.operations.update_principal import update_principal
from cynosure.common.secrets import Secret


def describe_principal(entity: PrincipalEntity) -> wire.Principal:
    """A principal as it is answered."""
    return wire.Principal(
        name=entity.name,
        client_id=entity.client_id,
        properties=entity.properties,
        create_timestamp=to_ms(entity.created_us),
        last_update_timestamp=to_ms(entity.updated_us),
        entity_version=entity.version,
        trusted_service=entity.is_trusted_service,
        credential_rotation_required=entity.is_rotation_required,
    )


def _with_credentials(made: PrincipalWithCredentials, *, status: int) -> Response:
    shown = wire.Credentials(made.credentials.client_id, made.credentials.client_secret.reveal())
    answer = wire.PrincipalWithCredentials(describe_principal(made.principal), shown)
    return Response.json(answer, status=status, headers=[NO_STORE])


class PrincipalHandlers:
    """The handlers of principals."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def list(self, request: Request) -> Response:
        """All principals, by name."""
        query: wire.ListQuery = request.query
        page = await list_principals(self._identities, caller_of(request), query.paging())
        found = [describe_principal(each) for each in page.principals]
        return Response.json(wire.Principals(found, page.next_token))

    async def create(self, request: Request) -> Response:
        """Create a principal; its secret is in the answer and nowhere else."""
        body: wire.CreatePrincipalRequest = request.body
        given = required(body.principal, "principal")
        wanted = NewPrincipal(
            name=given.name,
            properties=given.properties or {},
            is_rotation_required=bool(body.credential_rotation_required),
        )
        made = await create_principal(self._identities, caller_of(request), wanted)
        return _with_credentials(made, status=201)

    async def load(self, request: Request) -> Response:
        """One principal."""
        entity = await load_principal(self._identities, caller_of(request), name_of(request, "principalName"))
        return Response.json(describe_principal(entity))

    async def update(self, request: Request) -> Response:
        """Replace its properties."""
        body: wire.UpdatePrincipalRequest = request.body
        entity = await update_principal(
            self._identities,
            caller_of(request),
            name_of(request, "principalName"),
            body.current_entity_version,
            body.properties,
        )
        return Response.json(describe_principal(entity))

    async def delete(self, request: Request) -> Response:
        """Delete it, and with it all of its tokens."""
        await delete_principal(self._identities, caller_of(request), name_of(request, "principalName"))
        return Response(204)

    async def rotate(self, request: Request) -> Response:
        """Another secret; the one before stays good until the next rotation."""
        made = await rotate_credentials(
            self._identities, caller_of(request), name_of(request, "principalName")
        )
        return _with_credentials(made, status=200)

    async def reset(self, request: Request) -> Response:
        """New credentials; the old ones are not good any more."""
        body: wire.ResetPrincipalRequest = request.body or wire.ResetPrincipalRequest()
        made = await reset_credentials(
            self._identities,
            caller_of(request),
            name_of(request, "principalName"),
            client_id=body.client_id or None,
            client_secret=Secret(body.client_secret) if body.client_secret else None,
        )
        return _with_credentials(made, status=200)


def principal_routes(identities: Identities) -> list[Route]:
    """The routes of principals."""
    handlers = PrincipalHandlers(identities)
    route = partial(Route, tags=("principals",))
    many = f"{BASE}/principals"
    one = f"{many}/{{principalName}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listPrincipals",
            summary="List principals",
            query=wire.ListQuery,
            responses={200: wire.Principals},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createPrincipal",
            summary="Create a principal; the answer holds its secret",
            request=wire.CreatePrincipalRequest,
            responses={201: wire.PrincipalWithCredentials},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="getPrincipal",
            summary="Load a principal",
            responses={200: wire.Principal},
        ),
        route(
            "PUT",
            one,
            handlers.update,
            operation_id="updatePrincipal",
            summary="Replace the properties of a principal",
            request=wire.UpdatePrincipalRequest,
            responses={200: wire.Principal},
        ),
        route(
            "DELETE",
            one,
            handlers.delete,
            operation_id="deletePrincipal",
            summary="Delete a principal and all its tokens",
            responses={204: None},
        ),
        route(
            "POST",
            f"{one}/rotate",
            handlers.rotate,
            operation_id="rotateCredentials",
            summary="Make another secret; the one before stays good until the next rotation",
            responses={200: wire.PrincipalWithCredentials},
        ),
        route(
            "POST",
            f"{one}/reset",
            handlers.reset,
            operation_id="resetCredentials",
            summary="Set or make new credentials; the old ones are not good any more",
            request=wire.ResetPrincipalRequest,
            is_body_optional=True,
            responses={200: wire.PrincipalWithCredentials},
        ),
    ]
