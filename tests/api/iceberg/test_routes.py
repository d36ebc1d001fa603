import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.openapi import describe_routes
from cynosure.api.router import Route
from cynosure.catalog.directory import Directory

pytestmark = pytest.mark.anyio


@pytest.fixture
def routes(directory: Directory) -> list[Route]:
    return iceberg_routes(Catalogs(directory))


@pytest.fixture(scope="module")
def protocol(specs: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((specs / "iceberg-rest-catalog.yaml").read_text())
    return document


async def test_the_description_is_a_valid_one(routes: list[Route]) -> None:
    document = msgspec.json.decode(msgspec.json.encode(describe_routes(routes, title="t", version="1")))

    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


async def test_every_operation_says_what_it_reads_and_answers(routes: list[Route]) -> None:
    for route in routes:
        assert route.responses, route.path
        assert route.summary, route.path
        assert route.method not in ("PUT", "PATCH"), "the protocol has none"


async def test_paths_and_operations_are_those_of_the_protocol(
    routes: list[Route], protocol: dict[str, Any]
) -> None:
    ours = [route for route in routes if route.path.startswith(f"{BASE}/v1/")]

    for route in ours:
        theirs = protocol["paths"][route.path.removeprefix(BASE)][route.method.lower()]
        assert theirs["operationId"] == route.operation_id
        assert {str(status) for status in route.responses} <= {str(status) for status in theirs["responses"]}


async def test_no_field_is_required_that_the_protocol_leaves_to_the_client(
    routes: list[Route], protocol: dict[str, Any]
) -> None:
    document = describe_routes(routes, title="t", version="1")
    ours, theirs = document["components"]["schemas"], protocol["components"]["schemas"]

    compared = 0
    for name in ours.keys() & theirs.keys():
        if name.endswith(("Request", "Identifier")):
            assert set(ours[name].get("required", ())) <= set(theirs[name].get("required", ())), name
            assert set(theirs[name]["properties"]) <= set(ours[name]["properties"]), name
            compared += 1
    assert compared >= 9


async def test_every_operation_that_takes_a_key_in_the_protocol_takes_the_same_keys_here(
    routes: list[Route], protocol: dict[str, Any]
) -> None:
    header = protocol["components"]["parameters"]["idempotency-key"]
    reference = {"$ref": "#/components/parameters/idempotency-key"}
    theirs = {
        operation["operationId"]
        for path in protocol["paths"].values()
        for method, operation in path.items()
        if method != "parameters" and reference in operation.get("parameters", [])
    }
    document = describe_routes(routes, title="t", version="1", has_keys=True)
    ours = {
        operation["operationId"]: found["schema"]
        for path in document["paths"].values()
        for operation in path.values()
        for found in operation.get("parameters", ())
        if found["name"] == header["name"]
    }

    assert theirs & {route.operation_id for route in routes} <= set(ours)
    for schema in ours.values():
        assert schema["minLength"] <= header["schema"]["minLength"]
        assert schema["maxLength"] >= header["schema"]["maxLength"]
        assert re.search(schema["pattern"], header["schema"]["example"])


async def test_operations_that_give_access_to_files_describe_how_it_is_asked_for(
    routes: list[Route], protocol: dict[str, Any]
) -> None:
    reference = {"$ref": "#/components/parameters/data-access"}
    header = protocol["components"]["parameters"]["data-access"]
    described = {
        route.operation_id: route.headers[header["name"]]
        for route in routes
        if header["name"] in route.headers
    }

    theirs = {
        operation["operationId"]
        for path in protocol["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
        and reference in (*path.get("parameters", ()), *operation.get("parameters", ()))
    }
    assert set(described) == theirs & {route.operation_id for route in routes}
    assert all(schema == header["schema"] for schema in described.values())
