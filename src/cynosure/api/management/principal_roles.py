"""Principal roles, and which principals have them."""

from functools import partial

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire
from cynosure.api.management.context import BASE, name_of, required, to_ms
from cynosure.api.management.principals import describe_principal
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.entities import PrincipalRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_name
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.list_assignees import list_assignees
from cynosure.auth.operations.list_principal_roles import list_principal_roles
from cynosure.auth.operations.list_roles_of_principal import list_roles_of_principal
from cynosure.auth.operations.load_principal_role import load_principal_role
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.update_principal_role import update_principal_role


def describe_principal_role(entity: PrincipalRoleEntity) -> wire.PrincipalRole:
    """A principal role as it is answered."""
    return wire.PrincipalRole(
        name=entity.name,
        federated=entity.is_federated,
        properties=entity.properties,
        create_timestamp=to_ms(entity.created_us),
        last_update_timestamp=to_ms(entity.updated_us),
        entity_version=entity.version,
    )


class PrincipalRoleHandlers:
    """The handlers of principal roles."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def list(self, request: Request) -> Response:
        """All principal roles, by name."""
        query: wire.ListQuery = request.query
        page = await list_principal_roles(self._identities, caller_of(request), query.paging())
        found = [describe_principal_role(each) for each in page.roles]
        return Response.json(wire.PrincipalRoles(found, page.next_token))

    async def create(self, request: Request) -> Response:
        """Create a principal role."""
        body: wire.CreatePrincipalRoleRequest = request.body
        given = required(body.principal_role, "principalRole")
        wanted = NewPrincipalRole(
            name=given.name, properties=given.properties or {}, is_federated=bool(given.federated)
        )
        entity = await create_principal_role(self._identities, caller_of(request), wanted)
        return Response.json(describe_principal_role(entity), status=201)

    async def load(self, request: Request) -> Response:
        """One principal role."""
        name = name_of(request, "principalRoleName")
        entity = await load_principal_role(self._identities, caller_of(request), name)
        return Response.json(describe_principal_role(entity))

    async def update(self, request: Request) -> Response:
        """Replace its properties."""
        body: wire.UpdatePrincipalRoleRequest = request.body
        entity = await update_principal_role(
            self._identities,
            caller_of(request),
            name_of(request, "principalRoleName"),
            body.current_entity_version,
            body.properties,
        )
        return Response.json(describe_principal_role(entity))

    async def delete(self, request: Request) -> Response:
        """Delete it; nobody has it any more."""
        await delete_principal_role(
            self._identities, caller_of(request), name_of(request, "principalRoleName")
        )
        return Response(204)

    async def assign(self, request: Request) -> Response:
        """Give it to a principal."""
        body: wire.GrantPrincipalRoleRequest = request.body
        role = check_name(required(body.principal_role, "principalRole").name, field="principalRole.name")
        principal = name_of(request, "principalName")
        await assign_principal_role(self._identities, caller_of(request), principal, role)
        return Response(201)

    async def revoke(self, request: Request) -> Response:
        """Take it from a principal."""
        principal, role = name_of(request, "principalName"), name_of(request, "principalRoleName")
        await revoke_principal_role(self._identities, caller_of(request), principal, role)
        return Response(204)

    async def list_assigned(self, request: Request) -> Response:
        """The roles of a principal."""
        query: wire.ListQuery = request.query
        page = await list_roles_of_principal(
            self._identities, caller_of(request), name_of(request, "principalName"), query.paging()
        )
        found = [describe_principal_role(each) for each in page.roles]
        return Response.json(wire.PrincipalRoles(found, page.next_token))

    async def list_assignees(self, request: Request) -> Response:
        """The principals that have a role."""
        query: wire.ListQuery = request.query
        page = await list_assignees(
            self._identities, caller_of(request), name_of(request, "principalRoleName"), query.paging()
        )
        found = [describe_principal(each) for each in page.principals]
        return Response.json(wire.Principals(found, page.next_token))


def principal_role_routes(identities: Identities) -> list[Route]:
    """The routes of principal roles."""
    handlers = PrincipalRoleHandlers(identities)
    route = partial(Route, tags=("principal-roles",))
    many = f"{BASE}/principal-roles"
    one = f"{many}/{{principalRoleName}}"
    assigned = f"{BASE}/principals/{{principalName}}/principal-roles"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listPrincipalRoles",
            summary="List principal roles",
            query=wire.ListQuery,
            responses={200: wire.PrincipalRoles},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createPrincipalRole",
            summary="Create a principal role",
            request=wire.CreatePrincipalRoleRequest,
            responses={201: wire.PrincipalRole},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="getPrincipalRole",
            summary="Load a principal role",
            responses={200: wire.PrincipalRole},
        ),
        route(
            "PUT",
            one,
            handlers.update,
            operation_id="updatePrincipalRole",
            summary="Replace the properties of a principal role",
            request=wire.UpdatePrincipalRoleRequest,
            responses={200: wire.PrincipalRole},
        ),
        route(
            "DELETE",
            one,
            handlers.delete,
            operation_id="deletePrincipalRole",
            summary="Delete a principal role",
            responses={204: None},
        ),
        route(
            "GET",
            f"{one}/principals",
            handlers.list_assignees,
            operation_id="listAssigneePrincipalsForPrincipalRole",
            summary="List the principals that have a principal role",
            query=wire.ListQuery,
            responses={200: wire.Principals},
        ),
        route(
            "GET",
            assigned,
            handlers.list_assigned,
            operation_id="listPrincipalRolesAssigned",
            summary="List the principal roles of a principal",
            query=wire.ListQuery,
            responses={200: wire.PrincipalRoles},
        ),
        route(
            "PUT",
            assigned,
            handlers.assign,
            operation_id="assignPrincipalRole",
            summary="Give a principal a principal role",
            request=wire.GrantPrincipalRoleRequest,
            responses={201: None},
        ),
        route(
            "DELETE",
            f"{assigned}/{{principalRoleName}}",
            handlers.revoke,
            operation_id="revokePrincipalRole",
            summary="Take a principal role from a principal",
            responses={204: None},
        ),
    ]
