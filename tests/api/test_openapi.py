from msgspec import Struct
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.api.health import Readiness, health_routes
from cynosure.api.messages import Request, Response
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.openapi import NO_TOKENS, describe_routes
from cynosure.api.operator import OperatorCommands, operator_routes
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock


class Query(Struct, rename="camel"):
    parent: str
    page_size: int | None = None


class Nested(Struct, rename="kebab"):
    some_value: int


class Body(Struct):
    nested: list[Nested]
    properties: dict[str, str] = {}


async def handler(request: Request) -> Response:
    return Response()


ROUTES = [
    *health_routes(Readiness(SystemClock())),
    METRICS_ROUTE,
    *operator_routes(OperatorCommands()),
    Route(
        "POST",
        "/v1/{prefix}/namespaces/{namespace}/tables",
        handler,
        operation_id="createTable",
        request=Body,
        query=Query,
        responses={200: Body, 204: None},
    ),
]


def test_the_description_is_valid_openapi() -> None:
    document = describe_routes(ROUTES, title="test", version="1")

    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_described_once() -> None:
    document = describe_routes(ROUTES, title="test", version="1")

    described = {
        (method.upper(), path): operation["operationId"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert described == {(route.method, route.path): route.operation_id for route in ROUTES}


def test_parameters_bodies_and_errors_are_described() -> None:
    document = describe_routes(ROUTES, title="test", version="1")

    operation = document["paths"]["/v1/{prefix}/namespaces/{namespace}/tables"]["post"]
    parameters = [(found["name"], found["in"], found["required"]) for found in operation["parameters"]]
    assert parameters == [
        ("prefix", "path", True),
        ("namespace", "path", True),
        ("parent", "query", True),
        ("pageSize", "query", False),
    ]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Body"
    }
    statuses = ["200", "204", "400", "401", "403", "404", "408", "409", "413", "415", "default"]
    assert set(operation["responses"]) == set(statuses)
    assert "some-value" in document["components"]["schemas"]["Nested"]["properties"]


def test_what_is_not_public_says_how_to_prove_who_asks() -> None:
    document = describe_routes(ROUTES, title="test", version="1")

    closed = document["paths"]["/v1/{prefix}/namespaces/{namespace}/tables"]["post"]
    public = document["paths"][METRICS_ROUTE.path]["get"]
    schemes = document["components"]["securitySchemes"]
    assert {name for each in closed["security"] for name in each} == set(schemes)
    assert "security" not in public
    assert {each["type"] for each in schemes.values()} == {"oauth2", "http"}


def test_a_service_that_knows_its_callers_by_the_socket_asks_for_no_tokens() -> None:
    document = describe_routes(ROUTES, title="test", version="1", schemes=NO_TOKENS)

    assert "securitySchemes" not in document["components"]
    assert not any("security" in each for item in document["paths"].values() for each in item.values())


def test_a_body_that_may_be_missing_is_described_so() -> None:
    route = Route("POST", "/reset", handler, operation_id="reset", request=Body, is_body_optional=True)

    document = describe_routes([route], title="test", version="1")

    assert document["paths"]["/reset"]["post"]["requestBody"]["required"] is False


def test_headers_that_a_handler_reads_are_described() -> None:
    headers = {"X-Wish": {"type": "string", "enum": ["more"]}}
    route = Route("GET", "/x", handler, operation_id="x", headers=headers)

    document = describe_routes([route], title="test", version="1")

    OpenAPIV31SpecValidator(document).validate()
    assert document["paths"]["/x"]["get"]["parameters"] == [
        {"name": "X-Wish", "in": "header", "required": False, "schema": headers["X-Wish"]}
    ]


KEYED = [
    Route("GET", "/read", handler, operation_id="read"),
    Route("HEAD", "/read", handler, operation_id="look"),
    Route("PUT", "/change", handler, operation_id="change"),
    Route("DELETE", "/change", handler, operation_id="remove"),
    Route(
        "POST", "/commit", handler, operation_id="commit", is_commit=True, responses={200: Body, 204: None}
    ),
    Route("POST", "/ask", handler, operation_id="ask", changes_nothing=True),
    Route("POST", "/token", handler, operation_id="token", is_public=True),
]


def test_a_key_is_described_for_every_operation_that_takes_one_and_no_other() -> None:
    document = describe_routes(KEYED, title="test", version="1", has_keys=True)

    OpenAPIV31SpecValidator(document).validate()
    keys = {
        operation["operationId"]: found
        for item in document["paths"].values()
        for operation in item.values()
        for found in operation.get("parameters", ())
        if found["name"] == "Idempotency-Key"
    }
    assert set(keys) == {"change", "remove", "commit"}
    for key in keys.values():
        assert (key["in"], key["required"]) == ("header", False)
        assert key["schema"] == {
            "type": "string",
            "pattern": "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$",
            "minLength": 1,
            "maxLength": 255,
        }


def test_what_a_key_can_be_answered_with_is_described() -> None:
    document = describe_routes(KEYED, title="test", version="1", has_keys=True)

    answers = {
        operation["operationId"]: {"409", "422", "504"} & set(operation["responses"])
        for item in document["paths"].values()
        for operation in item.values()
    }
    assert answers["change"] == answers["remove"] == {"409", "422"}
    assert answers["commit"] == {"409", "422", "504"}
    assert answers["ask"] == {"409"}
    assert answers["read"] == answers["token"] == set()
    committed = document["paths"]["/commit"]["post"]["responses"]
    assert all("Idempotency-Replayed" in committed[status]["headers"] for status in ("200", "204"))


def test_keys_that_do_not_count_are_not_described() -> None:
    document = describe_routes(KEYED, title="test", version="1")

    assert "Idempotency" not in repr(document)
    assert "422" not in document["paths"]["/change"]["put"]["responses"]


def test_refusals_of_one_operation_are_described_beside_those_of_all() -> None:
    route = Route("GET", "/list", handler, operation_id="list", query=Query, errors=(501,), is_public=True)

    document = describe_routes([route], title="test", version="1")

    assert set(document["paths"]["/list"]["get"]["responses"]) == {"200", "400", "501", "default"}
    assert "NotImplemented" in document["components"]["responses"]
