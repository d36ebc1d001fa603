"""Requests made from the gateway's own description get only answers that it describes."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

from cynosure.testing.scripted_statements import Script, ScriptedStatements, make_query_service

ID = "0191e0a0-1111-7111-8111-111111111111"
NAMES = {"statement": [ID], "page": ["1", "2"]}


class Anything(dict[str, Script]):
    """Every statement has an answer."""

    def get(self, key: str, default: Any = None) -> Any:
        return Script.of(pa.table({"a": [1], "b": [{"c": [b"x"]}]}))


@pytest.fixture
def send() -> Iterator[Any]:
    statements = ScriptedStatements()
    statements.scripts = Anything()
    with asyncio.Runner() as runner:
        transport = httpx.ASGITransport(make_query_service(statements).app)
        headers = {"Authorization": "Bearer token-of-ann"}
        http = httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)

        def call(method: str, path: str, **request: Any) -> httpx.Response:
            return runner.run(http.request(method, path, **request))

        call("POST", "/api/query/v1/statements", json={"sql": "SELECT 1", "statement-id": ID})
        yield call
        runner.run(http.aclose())


def _request_of(case: Case) -> dict[str, Any]:
    request: dict[str, Any] = {"headers": {}}
    if case.query:
        request["params"] = dict(case.query)
    if case.body is not NOT_SET:
        is_bytes = isinstance(case.body, bytes)
        request["content"] = case.body if is_bytes else json.dumps(case.body, default=str)
        request["headers"]["content-type"] = case.media_type or "application/json"
    return request


def _try(send: Any, operation: Any, mode: GenerationMode, seen: set[int]) -> None:
    @settings(
        max_examples=12, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def try_one(case: Case, data: st.DataObject) -> None:
        path = operation.path
        for name, made in (case.path_parameters or {}).items():
            chosen = data.draw(st.sampled_from([*NAMES[name], str(made)]))
            path = path.replace(f"{{{name}}}", quote(chosen, safe=""))
        answer = send(case.method, path, **_request_of(case))
        seen.add(answer.status_code)
        assert answer.status_code < 500, answer.text
        if path.count("/") == operation.path.count("/") and "//" not in path and not path.endswith("/"):
            assert str(answer.status_code) in operation.definition.raw["responses"], answer.text
            operation.validate_response(answer)

    try_one()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
def test_every_request_gets_an_answer_that_the_description_has(send: Any, mode: GenerationMode) -> None:
    description = send("GET", "/openapi.json").json()
    OpenAPIV31SpecValidator(description).validate()
    statuses: dict[str, set[int]] = {}

    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok()
        described = description["paths"][operation.path][operation.method]
        has_input = "parameters" in described or "requestBody" in described
        if not operation.path.startswith("/api/query") or not (has_input or mode is GenerationMode.POSITIVE):
            continue
        seen = statuses.setdefault(described["operationId"], set())

        _try(send, operation, mode, seen)

    assert set(statuses) == (
        {
            "getQueryConfig",
            "submitStatement",
            "listStatements",
            "getStatement",
            "cancelStatement",
            "getResults",
        }
        if mode is GenerationMode.POSITIVE
        else {"submitStatement", "getStatement", "getResults", "cancelStatement"}
    )
    assert (200 if mode is GenerationMode.POSITIVE else 400) in statuses["submitStatement"]
