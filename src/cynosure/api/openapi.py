"""The OpenAPI 3.1 description, generated from the routes.

A maintainer must not break: what is served and what is described come from the same `Route`, so
they cannot disagree.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cynosure.api.errors import ErrorEnvelope
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.idempotency.keys import HEADER, MAX_LENGTH, PATTERN

_REF = "#/components/schemas/{name}"
_TOKENS_PATH = "/api/catalog/v1/oauth/tokens"
_CONTINUED_BY = frozenset({"pageToken", "cursor", "from"})
"""Query parameters that were handed out for a while only."""

TOKENS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "OAuth2": {
            "type": "oauth2",
            "description": "Client id and secret of a principal, for a token with some or all of its roles.",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": _TOKENS_PATH,
                    "scopes": {"PRINCIPAL_ROLE:ALL": "All principal roles that the principal has"},
                }
            },
        },
        "Bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of this server, or of an issuer that it trusts.",
        },
    }
)
"""How callers of routes that are not public say who they are, where tokens are asked for."""
_KEY: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "name": HEADER,
        "in": "header",
        "required": False,
        "description": "Makes the request safe to repeat: while the key lives, the same request with the "
        "same key is carried out at most once, and gets the same answer. Every new request needs a new key, "
        "such as a UUID of version 7.",
        "schema": {"type": "string", "pattern": PATTERN, "minLength": 1, "maxLength": MAX_LENGTH},
    }
)
_REPLAYED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "Idempotency-Replayed": {
            "description": "Present when this is the answer of an earlier request with the same key",
            "schema": {"type": "string", "const": "true"},
        }
    }
)
NO_TOKENS: Final[Mapping[str, Any]] = MappingProxyType({})
"""For services that know their callers by the socket they come through."""


def describe_routes(
    routes: Sequence[Route],
    *,
    title: str,
    version: str,
    schemes: Mapping[str, Any] = TOKENS,
    has_keys: bool = False,
    error_type: Any = ErrorEnvelope,
) -> dict[str, Any]:
    """The whole document as plain JSON values. `has_keys` says whether Idempotency-Keys count."""
    types = list(_list_types(routes, error_type))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = {id(type_): schema for type_, schema in zip(types, schemas, strict=True)}
    error = _json_content(by_type[id(error_type)])
    paths: dict[str, dict[str, Any]] = {}
    statuses: set[int] = set()
    for route in routes:
        operation = paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, by_type, has_key=has_keys and route.is_keyed
        )
        if not route.is_public and schemes:
            operation["security"] = [{name: []} for name in schemes]
        statuses |= _errors_of(route, has_key=has_keys and route.is_keyed)
    answers = {_component(status): {"description": _phrase(status), "content": error} for status in statuses}
    answers["Error"] = {"description": "An error; the message names the cause and the fix", "content": error}
    is_guarded = schemes and not all(route.is_public for route in routes)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": dict(sorted(answers.items())),
            **({"securitySchemes": dict(schemes)} if is_guarded else {}),
        },
    }


def openapi_route(
    routes: Sequence[Route],
    *,
    title: str,
    version: str,
    schemes: Mapping[str, Any] = TOKENS,
    has_keys: bool = False,
    error_type: Any = ErrorEnvelope,
) -> Route:
    """`GET /openapi.json` for these routes and itself. Worked out when it is asked for, once."""

    @cache
    def encode() -> bytes:
        described = describe_routes(
            [*routes, route],
            title=title,
            version=version,
            schemes=schemes,
            has_keys=has_keys,
            error_type=error_type,
        )
        return msgspec.json.encode(described)

    async def serve_openapi(request: Request) -> Response:
        return Response(200, encode())

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
    return route


def _list_types(routes: Iterable[Route], error_type: Any) -> Iterable[Any]:
    seen: set[int] = set()
    for candidate in [error_type, *(t for route in routes for t in _types_of(route))]:
        if id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate


def _types_of(route: Route) -> list[Any]:
    declared = [route.request, route.form, *route.responses.values()]
    return [declared_type for declared_type in declared if declared_type is not None]


def _operation(route: Route, schemas: dict[int, Any], *, has_key: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.operation_id}
    if route.summary:
        operation["summary"] = route.summary
    if route.tags:
        operation["tags"] = list(route.tags)
    parameters = [*_path_parameters(route), *_query_parameters(route), *_headers(route)]
    if has_key:
        parameters.append(dict(_KEY))
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {
            "required": not route.is_body_optional,
            "content": _json_content(schemas[id(route.request)]),
        }
    if route.form is not None:
        content = {"application/x-www-form-urlencoded": {"schema": schemas[id(route.form)]}}
        operation["requestBody"] = {"required": True, "content": content}
    responses: dict[str, Any] = {}
    for status, body_type in (route.responses or {200: None}).items():
        response: dict[str, Any] = {"description": _phrase(status)}
        if body_type is not None:
            response["content"] = _json_content(schemas[id(body_type)])
        if has_key:
            response["headers"] = dict(_REPLAYED)
        responses[str(status)] = response
    for status in sorted(_errors_of(route, has_key=has_key)):
        responses[str(status)] = {"$ref": f"#/components/responses/{_component(status)}"}
    responses["default"] = {"$ref": "#/components/responses/Error"}
    operation["responses"] = responses
    return operation


def _errors_of(route: Route, *, has_key: bool) -> set[int]:
    """What a request can be refused with; that the server is at fault is said by `default`."""
    statuses = set(route.errors)
    if has_key:
        # 409: the first request with this key has not ended yet; 422: the key stands for another one. Clients
        # of commits would take 409 for a refusal of what they wrote, so they are told that nobody knows yet.
        statuses |= {409, 422, 504} if route.is_commit else {409, 422}
    if not route.is_public:
        statuses |= {400, 401, 403, 404}
        if route.method not in ("GET", "HEAD"):
            statuses.add(409)
    if route.list_params():
        statuses |= {400, 404}
    if route.query is not None:
        statuses.add(400)
        if _CONTINUED_BY & set(route.query.__struct_encode_fields__):
            statuses.add(410)
    if route.request is not None:
        statuses |= {400, 408, 413, 415}
    return statuses


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _component(status: int) -> str:
    return "".join(word for word in _phrase(status) if word.isalnum())


def _json_content(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.list_params()
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "schema": schema}
        for name, schema in route.headers.items()
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
