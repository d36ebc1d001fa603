"""Our description serves all that the Polaris document promises."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.api.management.context import BASE
from cynosure.api.openapi import describe_routes
from tests.api.superset import Comparison

pytestmark = pytest.mark.anyio

ROLE_MAY_BE_LEFT_OUT = (
    "GET /catalogs 200.catalogs[]<EXTERNAL>.connectionConfigInfo<ICEBERG_REST>"
    ".authenticationParameters<SIGV4>: may leave out ['roleArn']"
)
"""A connection of ours has keys of its own, which may sign themselves; theirs always assumes a role."""


@pytest.fixture
def ours(refusing: Any) -> dict[str, Any]:
    document = describe_routes(refusing.world.service.routes, title="t", version="1", has_keys=True)
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


@pytest.fixture(scope="module")
def theirs(specs: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((specs / "polaris-management.yaml").read_text())
    return document


async def test_the_description_is_a_valid_one(ours: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(ours).iter_errors()) == []


async def test_ours_is_a_superset_of_the_polaris_document(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    comparison = Comparison(ours, theirs)

    comparison.compare_paths(BASE)

    assert comparison.lacks == [ROLE_MAY_BE_LEFT_OUT]
    assert comparison.compared > 100


async def test_every_operation_says_what_it_may_be_refused_with(ours: dict[str, Any]) -> None:
    for path, item in ours["paths"].items():
        if not path.startswith(BASE):
            continue
        for method, operation in item.items():
            responses = set(operation["responses"])
            assert {"400", "401", "403", "404", "default"} <= responses, path
            assert ("409" in responses) == (method != "get"), path
            assert operation["security"], path
            assert operation["summary"], path


def test_the_comparison_notices_what_is_missing() -> None:
    served = {
        "paths": {
            "/base/things": {
                "get": {
                    "operationId": "list",
                    "parameters": [
                        {"name": "q", "in": "query", "required": True, "schema": {"type": "string"}}
                    ],
                    "responses": {
                        "200": {
                            "content": {
                                "application/json": {
                                    "schema": {"type": "object", "properties": {"a": {"type": "string"}}}
                                }
                            }
                        }
                    },
                }
            }
        }
    }
    promised = {
        "paths": {
            "/things": {
                "get": {
                    "operationId": "list",
                    "parameters": [
                        {"name": "q", "in": "query", "schema": {"type": "string"}},
                        {"name": "r", "in": "query", "schema": {"type": "string"}},
                    ],
                    "responses": {
                        200: {
                            "content": {
                                "application/json": {
                                    "schema": {
                                        "type": "object",
                                        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                                        "required": ["a"],
                                    }
                                }
                            }
                        },
                        403: {},
                    },
                },
                "post": {"operationId": "create", "responses": {}},
            }
        }
    }
    comparison = Comparison(served, promised)

    comparison.compare_paths("/base")

    assert comparison.lacks == [
        "GET /things parameter q: required",
        "GET /things parameter r: missing",
        "GET /things 200: may leave out ['a']",
        "GET /things 200.a: no integer",
        "GET /things 200.b: missing",
        "GET /things: answer 403 is not described",
        "POST /things: not served",
    ]
