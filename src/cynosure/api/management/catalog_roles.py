"""Catalog roles, and which principal roles have them."""

from functools import partial

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire
from cynosure.api.management.context import BASE, catalog_of, name_of, required, to_ms
from cynosure.api.management.principal_roles import describe_principal_role
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.entities import CatalogRoleEntity
from cynosure.auth.names import check_name
from cynosure.catalog.directory import Directory
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.list_assignees import list_assignees
from cynosure.catalog.roles.list_catalog_roles import list_catalog_roles
from cynosure.catalog.roles.list_catalog_roles_of_principal_role import list_catalog_roles_of_principal_role
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.catalog.roles.update_catalog_role import update_catalog_role


def describe_catalog_role(entity: CatalogRoleEntity) -> wire.CatalogRole:
    """A catalog role as it is answered."""
    return wire.CatalogRole(
        name=entity.name,
        properties=entity.properties,
        create_timestamp=to_ms(entity.created_us),
        last_update_timestamp=to_ms(entity.updated_us),
        entity_version=entity.version,
    )


class CatalogRoleHandlers:
    """The handlers of catalog roles."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def list(self, request: Request) -> Response:
        """All roles of a catalog, by name."""
        caller = caller_of(request)
        query: wire.ListQuery = request.query
        catalog = await catalog_of(self._directory, caller, request)
        page = await list_catalog_roles(catalog, caller, query.paging())
        found = [describe_catalog_role(each) for each in page.roles]
        return Response.json(wire.CatalogRoles(found, page.next_token))

    async def create(self, request: Request) -> Response:
        """Create a role in a catalog."""
        caller = caller_of(request)
        body: wire.CreateCatalogRoleRequest = request.body
        given = required(body.catalog_role, "catalogRole")
        catalog = await catalog_of(self._directory, caller, request)
        entity = await create_catalog_role(catalog, caller, given.name, given.properties or {})
        return Response.json(describe_catalog_role(entity), status=201)

    async def load(self, request: Request) -> Response:
        """One catalog role."""
        caller = caller_of(request)
        catalog = await catalog_of(self._directory, caller, request)
        entity = await load_catalog_role(catalog, caller, name_of(request, "catalogRoleName"))
        return Response.json(describe_catalog_role(entity))

    async def update(self, request: Request) -> Response:
        """Replace its properties."""
        caller = caller_of(request)
        body: wire.UpdateCatalogRoleRequest = request.body
        catalog = await catalog_of(self._directory, caller, request)
        name = name_of(request, "catalogRoleName")
        entity = await update_catalog_role(
            catalog, caller, name, body.current_entity_version, body.properties
        )
        return Response.json(describe_catalog_role(entity))

    async def delete(self, request: Request) -> Response:
        """Delete it with its grants."""
        caller = caller_of(request)
        catalog = await catalog_of(self._directory, caller, request)
        await delete_catalog_role(catalog, caller, name_of(request, "catalogRoleName"))
        return Response(204)

    async def list_assignees(self, request: Request) -> Response:
        """The principal roles that have it."""
        caller = caller_of(request)
        query: wire.ListQuery = request.query
        catalog = await catalog_of(self._directory, caller, request)
        page = await list_assignees(catalog, caller, name_of(request, "catalogRoleName"), query.paging())
        found = [describe_principal_role(each) for each in page.roles]
        return Response.json(wire.PrincipalRoles(found, page.next_token))

    async def list_assigned(self, request: Request) -> Response:
        """The roles of a catalog that a principal role has."""
        caller = caller_of(request)
        query: wire.ListQuery = request.query
        catalog = await catalog_of(self._directory, caller, request)
        page = await list_catalog_roles_of_principal_role(
            catalog, caller, name_of(request, "principalRoleName"), query.paging()
        )
        found = [describe_catalog_role(each) for each in page.roles]
        return Response.json(wire.CatalogRoles(found, page.next_token))

    async def assign(self, request: Request) -> Response:
        """Give it to a principal role."""
        caller = caller_of(request)
        body: wire.GrantCatalogRoleRequest = request.body
        role = check_name(required(body.catalog_role, "catalogRole").name, field="catalogRole.name")
        catalog = await catalog_of(self._directory, caller, request)
        await assign_catalog_role(catalog, caller, role, name_of(request, "principalRoleName"))
        return Response(201)

    async def revoke(self, request: Request) -> Response:
        """Take it from a principal role."""
        caller = caller_of(request)
        catalog = await catalog_of(self._directory, caller, request)
        role, principal_role = name_of(request, "catalogRoleName"), name_of(request, "principalRoleName")
        await revoke_catalog_role(catalog, caller, role, principal_role)
        return Response(204)


def catalog_role_routes(directory: Directory) -> list[Route]:
    """The routes of catalog roles."""
    handlers = CatalogRoleHandlers(directory)
    route = partial(Route, tags=("catalog-roles",))
    many = f"{BASE}/catalogs/{{catalogName}}/catalog-roles"
    one = f"{many}/{{catalogRoleName}}"
    assigned = f"{BASE}/principal-roles/{{principalRoleName}}/catalog-roles/{{catalogName}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listCatalogRoles",
            summary="List the roles of a catalog",
            query=wire.ListQuery,
            responses={200: wire.CatalogRoles},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createCatalogRole",
            summary="Create a role in a catalog",
            request=wire.CreateCatalogRoleRequest,
            responses={201: wire.CatalogRole},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="getCatalogRole",
            summary="Load a catalog role",
            responses={200: wire.CatalogRole},
        ),
        route(
            "PUT",
            one,
            handlers.update,
            operation_id="updateCatalogRole",
            summary="Replace the properties of a catalog role",
            request=wire.UpdateCatalogRoleRequest,
            responses={200: wire.CatalogRole},
        ),
        route(
            "DELETE",
            one,
            handlers.delete,
            operation_id="deleteCatalogRole",
            summary="Delete a catalog role with its grants",
            responses={204: None},
        ),
        route(
            "GET",
            f"{one}/principal-roles",
            handlers.list_assignees,
            operation_id="listAssigneePrincipalRolesForCatalogRole",
            summary="List the principal roles that have a catalog role",
            query=wire.ListQuery,
            responses={200: wire.PrincipalRoles},
        ),
        route(
            "GET",
            assigned,
            handlers.list_assigned,
            operation_id="listCatalogRolesForPrincipalRole",
            summary="List the roles of a catalog that a principal role has",
            query=wire.ListQuery,
            responses={200: wire.CatalogRoles},
        ),
        route(
            "PUT",
            assigned,
            handlers.assign,
            operation_id="assignCatalogRoleToPrincipalRole",
            summary="Give a principal role a catalog role",
            request=wire.GrantCatalogRoleRequest,
            responses={201: None},
        ),
        route(
            "DELETE",
            f"{assigned}/{{catalogRoleName}}",
            handlers.revoke,
            operation_id="revokeCatalogRoleFromPrincipalRole",
            summary="Take a catalog role from a principal role",
            responses={204: None},
        ),
    ]
