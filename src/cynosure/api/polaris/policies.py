"""Policies, as Apache Polaris serves them."""

from functools import partial

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of
from cynosure.api.messages import Request, Response
from cynosure.api.polaris import policy_wire as wire
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier, check_name, check_policy_name, parse_namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.operations.list_policies import list_policies
from cynosure.catalog.operations.load_policy import load_policy
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.policies.placing import AttachTo


class PolicyHandlers:
    """The handlers of policies."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def create(self, request: Request) -> Response:
        """Create a policy."""
        caller = caller_of(request)
        body: wire.CreatePolicyRequest = request.body
        wanted = CreatePolicy(
            path=Identifier(namespace_of(request), check_policy_name(body.name)),
            type=body.type,
            content=body.content,
            description=body.description,
        )
        catalog = await catalog_of(self._catalogs, caller, request)
        created = await create_policy(catalog, caller, wanted)
        return Response.json(wire.LoadPolicyResponse(wire.describe(wanted.path.name, created)))

    async def list(self, request: Request) -> Response:
        """The names of a namespace's policies."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        query: wire.ListPoliciesQuery = request.query
        catalog = await catalog_of(self._catalogs, caller, request)
        body = await list_policies(
            catalog, caller, namespace, query.paging(), policy_type=query.policy_type or ""
        )
        return Response(200, body)

    async def load(self, request: Request) -> Response:
        """A policy."""
        caller = caller_of(request)
        path = _policy_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        policy = await load_policy(catalog, caller, path)
        return Response.json(wire.LoadPolicyResponse(wire.describe(path.name, policy)))

    async def update(self, request: Request) -> Response:
        """Change what a policy says."""
        caller = caller_of(request)
        path = _policy_of(request)
        body: wire.UpdatePolicyRequest = request.body
        wanted = PolicyUpdate(body.content, body.description, body.current_policy_version)
        catalog = await catalog_of(self._catalogs, caller, request)
        policy = await update_policy(catalog, caller, path, wanted)
        return Response.json(wire.LoadPolicyResponse(wire.describe(path.name, policy)))

    async def drop(self, request: Request) -> Response:
        """Drop a policy."""
        caller = caller_of(request)
        path = _policy_of(request)
        query: wire.DropPolicyQuery = request.query
        catalog = await catalog_of(self._catalogs, caller, request)
        await drop_policy(catalog, caller, path, is_detaching=query.detach_all)
        return Response(204)

    async def attach(self, request: Request) -> Response:
        """Attach a policy to something."""
        caller = caller_of(request)
        path = _policy_of(request)
        body: wire.AttachPolicyRequest = request.body
        catalog = await catalog_of(self._catalogs, caller, request)
        target = body.target.checked()
        if catalog.is_federated:
            await self._see(catalog, caller, target)
        await attach_policy(catalog, caller, path, target, body.parameters)
        return Response(204)

    async def detach(self, request: Request) -> Response:
        """Detach a policy from something."""
        caller = caller_of(request)
        path = _policy_of(request)
        body: wire.DetachPolicyRequest = request.body
        catalog = await catalog_of(self._catalogs, caller, request)
        await detach_policy(catalog, caller, path, body.target.checked())
        return Response(204)

    async def list_applicable(self, request: Request) -> Response:
        """The policies that count for a catalog, namespace or table."""
        caller = caller_of(request)
        query: wire.ApplicableQuery = request.query
        namespace = parse_namespace(query.namespace) if query.namespace else ()
        name = check_name(query.target_name, field="target-name") if query.target_name else None
        catalog = await catalog_of(self._catalogs, caller, request)
        await self._catalogs.see(catalog, caller, namespace, table=name or "")
        page = await list_applicable_policies(
            catalog,
            caller,
            place_of(catalog, namespace, name),
            query.paging(),
            policy_type=query.policy_type or "",
        )
        found = [wire.describe_applicable(each) for each in page.policies]
        return Response.json(wire.ApplicablePoliciesResponse(found, page.next_token))

    async def _see(self, catalog: OpenCatalog, caller: Caller, target: AttachTo) -> None:
        """Have what a policy is to be attached to, so that it is for the one that is there now."""
        if target.type == "namespace":
            await self._catalogs.see(catalog, caller, target.path)
        elif target.type == "table-like" and len(target.path) > 1:
            *namespace, name = target.path
            await self._catalogs.see(catalog, caller, tuple(namespace), table=name)


def _policy_of(request: Request) -> Identifier:
    name = check_policy_name(request.params["policy-name"], field="policy-name")
    return Identifier(namespace_of(request), name)


def policy_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of policies."""
    handlers = PolicyHandlers(catalogs)
    route = partial(Route, tags=("polaris",))
    catalog = f"{BASE}/polaris/v1/{{prefix}}"
    many = f"{catalog}/namespaces/{{namespace}}/policies"
    one = f"{many}/{{policy-name}}"
    return [
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createPolicy",
            summary="Create a policy in a namespace",
            request=wire.CreatePolicyRequest,
            responses={200: wire.LoadPolicyResponse},
        ),
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listPolicies",
            summary="List the policies of a namespace",
            query=wire.ListPoliciesQuery,
            responses={200: wire.ListPoliciesResponse},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadPolicy",
            summary="Load a policy",
            responses={200: wire.LoadPolicyResponse},
        ),
        route(
            "PUT",
            one,
            handlers.update,
            operation_id="updatePolicy",
            summary="Change what a policy says",
            request=wire.UpdatePolicyRequest,
            responses={200: wire.LoadPolicyResponse},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="dropPolicy",
            summary="Drop a policy",
            query=wire.DropPolicyQuery,
            responses={204: None},
        ),
        route(
            "PUT",
            f"{one}/mappings",
            handlers.attach,
            operation_id="attachPolicy",
            summary="Attach a policy to a catalog, namespace or table",
            request=wire.AttachPolicyRequest,
            responses={204: None},
        ),
        route(
            "POST",
            f"{one}/mappings",
            handlers.detach,
            operation_id="detachPolicy",
            summary="Detach a policy from a catalog, namespace or table",
            request=wire.DetachPolicyRequest,
            responses={204: None},
        ),
        route(
            "GET",
            f"{catalog}/applicable-policies",
            handlers.list_applicable,
            operation_id="getApplicablePolicies",
            summary="List the policies that count for a catalog, namespace or table",
            query=wire.ApplicableQuery,
            responses={200: wire.ApplicablePoliciesResponse},
        ),
    ]
