"""What catalog roles may do: privileges granted, listed, revoked.

Must not break: granting is PUT and revoking is POST, both answered with 201, as Apache Polaris has it.
"""

from functools import partial

from cynosure.api.catalogs import Catalogs
from cynosure.api.errors import NotServed
from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire
from cynosure.api.management.context import BASE, catalog_of, missing, name_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.names import Identifier, check_name, check_namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.common.errors import BadInput


def read_grant(given: wire.GrantResource | None) -> Grant:
    """A grant as a client wrote it."""
    if given is None:
        raise missing("grant")
    privilege = Privilege.__members__.get(given.privilege)
    if privilege is None:
        raise BadInput(
            "There is no such privilege", field="grant.privilege", fix="The privileges are in /openapi.json."
        )
    if isinstance(given, wire.CatalogGrant):
        return Grant(kind="catalog", privilege=privilege)
    namespace = check_namespace(tuple(given.namespace), field="grant.namespace")
    match given:
        case wire.NamespaceGrant():
            return Grant(kind="namespace", privilege=privilege, namespace=namespace)
        case wire.TableGrant(table_name=name):
            name = check_name(name, field="grant.tableName")
            return Grant(kind="table", privilege=privilege, namespace=namespace, name=name)
        case wire.ViewGrant(view_name=name):
            name = check_name(name, field="grant.viewName")
            return Grant(kind="view", privilege=privilege, namespace=namespace, name=name)
        case wire.PolicyGrant(policy_name=name):
            name = check_name(name, field="grant.policyName")
            return Grant(kind="policy", privilege=privilege, namespace=namespace, name=name)


def describe_grant(grant: Grant) -> wire.GrantResource:
    """A grant as it is answered."""
    namespace, privilege = list(grant.namespace), grant.privilege.name
    match grant.kind:
        case "catalog":
            return wire.CatalogGrant(privilege)
        case "namespace":
            return wire.NamespaceGrant(namespace, privilege)
        case "table":
            return wire.TableGrant(namespace, grant.name, privilege)
        case "view":
            return wire.ViewGrant(namespace, grant.name, privilege)
        case "policy":
            return wire.PolicyGrant(namespace, grant.name, privilege)


class GrantHandlers:
    """The handlers of grants."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """The privileges of a catalog role, one by one."""
        caller = caller_of(request)
        query: wire.ListQuery = request.query
        catalog = await catalog_of(self._catalogs.directory, caller, request)
        page = await list_grants(catalog, caller, name_of(request, "catalogRoleName"), query.paging())
        found = [describe_grant(each) for each in page.grants]
        return Response.json(wire.GrantResources(found, page.next_token))

    async def add(self, request: Request) -> Response:
        """Grant a privilege."""
        caller = caller_of(request)
        body: wire.AddGrantRequest = request.body
        grant = read_grant(body.grant)
        catalog = await catalog_of(self._catalogs.directory, caller, request)
        if catalog.is_federated:
            await self._see(catalog, caller, grant)
        await grant_privilege(catalog, caller, name_of(request, "catalogRoleName"), grant)
        return Response(201)

    async def revoke(self, request: Request) -> Response:
        """Revoke a privilege."""
        caller = caller_of(request)
        query: wire.RevokeGrantQuery = request.query
        if query.cascade:
            raise NotServed(
                "Revoking with cascade is not served",
                fix="Revoke the grants below one by one, without cascade.",
            )
        body: wire.RevokeGrantRequest = request.body
        grant = read_grant(body.grant)
        catalog = await catalog_of(self._catalogs.directory, caller, request)
        await revoke_privilege(catalog, caller, name_of(request, "catalogRoleName"), grant)
        return Response(201)

    async def _see(self, catalog: OpenCatalog, caller: Caller, grant: Grant) -> None:
        """Have what is granted on, so that it is granted on that: what is missing is refused."""
        if grant.kind == "table":
            table = Identifier(grant.namespace, grant.name)
            await self._catalogs.federation.see_to_grant(catalog, caller, table)
        elif grant.kind == "view":
            await self._catalogs.see(catalog, caller, grant.namespace, view=grant.name)
        else:
            await self._catalogs.see(catalog, caller, grant.namespace)


def grant_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of grants."""
    handlers = GrantHandlers(catalogs)
    route = partial(Route, tags=("grants",))
    path = f"{BASE}/catalogs/{{catalogName}}/catalog-roles/{{catalogRoleName}}/grants"
    return [
        route(
            "GET",
            path,
            handlers.list,
            operation_id="listGrantsForCatalogRole",
            summary="List what a catalog role may do",
            query=wire.ListQuery,
            responses={200: wire.GrantResources},
        ),
        route(
            "PUT",
            path,
            handlers.add,
            operation_id="addGrantToCatalogRole",
            summary="Grant a privilege to a catalog role",
            request=wire.AddGrantRequest,
            responses={201: None},
        ),
        route(
            "POST",
            path,
            handlers.revoke,
            operation_id="revokeGrantFromCatalogRole",
            summary="Revoke a privilege from a catalog role",
            request=wire.RevokeGrantRequest,
            query=wire.RevokeGrantQuery,
            responses={201: None},
            errors=(501,),
        ),
    ]
