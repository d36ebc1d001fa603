"""The OpenAPI 3.1 description, generated from the routes.

A maintainer must not break: what is served and what is described come from the same `Route`, so
they cannot disagree.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from cynosure.api.errors import ErrorEnvelope
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route

_REF = "#/components/schemas/{name}"


def describe_routes(routes: Sequence[Route], *, title: str, version: str) -> dict[str, Any]:
    """The whole document as plain JSON values."""
    types = list(_list_types(routes))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = {id(type_): schema for type_, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def openapi_route(routes: Iterable[Route], *, title: str, version: str) -> Route:
    """`GET /openapi.json` for these routes and itself. Encoded once."""
    encoded = b""

    async def serve_openapi(request: Request) -> Response:
        return Response(200, encoded)

    route = Route(
        "GET",
        "/openapi.json",
        serve_openapi,
        is_public=True,
        operation_id="getOpenApi",
        summary="This description",
        tags=("service",),
        responses={200: dict[str, Any]},
    )
    encoded = msgspec.json.encode(describe_routes([*routes, route], title=title, version=version))
    return route


def _list_types(routes: Iterable[Route]) -> Iterable[Any]:
    seen: set[int] = set()
    for candidate in [ErrorEnvelope, *(t for route in routes for t in _types_of(route))]:
        if id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate


def _types_of(route: Route) -> list[Any]:
    declared = [route.request, *route.responses.values()]
    return [declared_type for declared_type in declared if declared_type is not None]


def _operation(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.operation_id}
    if route.summary:
        operation["summary"] = route.summary
    if route.tags:
        operation["tags"] = list(route.tags)
    if parameters := [*_path_parameters(route), *_query_parameters(route)]:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": _json_content(schemas[id(route.request)])}
    responses: dict[str, Any] = {}
    for status, body_type in (route.responses or {200: None}).items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if body_type is not None:
            response["content"] = _json_content(schemas[id(body_type)])
        responses[str(status)] = response
    responses["default"] = {
        "description": "An error; the message names the cause and the fix",
        "content": _json_content(schemas[id(ErrorEnvelope)]),
    }
    operation["responses"] = responses
    return operation


def _json_content(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.list_params()
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    (reference,), components = msgspec.json.schema_components([route.query])
    schema = components[reference["$ref"].rsplit("/", 1)[-1]]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field_schema}
        for name, field_schema in schema["properties"].items()
    ]
