from msgspec import Struct
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.api.health import Readiness, health_routes
from cynosure.api.messages import Request, Response
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.openapi import describe_routes
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
    assert {"200", "204", "400", "401", "403", "404", "409", "413", "415", "default"} <= set(operation["responses"])
    assert "some-value" in document["components"]["schemas"]["Nested"]["properties"]
