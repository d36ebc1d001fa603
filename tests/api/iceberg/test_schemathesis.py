"""Requests made from our own OpenAPI document, right and wrong ones, are never answered with a 5xx."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

EXAMPLES = 8
NAMES = {"prefix": ["lake"], "namespace": ["a", "a\x1fb"], "table": ["t"], "view": ["v"]}
"""Names that exist: with names made from the schema alone, every request would end at the first lookup."""


def request_of(case: Case) -> dict[str, Any]:
    request: dict[str, Any] = {}
    if case.query:
        request["params"] = case.query
    if case.body is not NOT_SET:
        is_bytes = isinstance(case.body, bytes)
        request["content"] = case.body if is_bytes else json.dumps(case.body, default=str)
        request["headers"] = {"content-type": case.media_type or "application/json"}
    return request


def can_be_wrong(described: dict[str, Any]) -> bool:
    """What takes nothing but text cannot be asked for in a way its description forbids."""
    schemas = [parameter["schema"] for parameter in described.get("parameters", ())]
    return "requestBody" in described or any(schema.get("type") != "string" for schema in schemas)


def try_operation(server: Any, operation: Any, mode: GenerationMode) -> set[int]:
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def try_one(case: Case, data: st.DataObject) -> None:
        path = operation.path
        for name, made in (case.path_parameters or {}).items():
            chosen = data.draw(st.sampled_from([*NAMES.get(name, []), str(made)]))
            path = path.replace(f"{{{name}}}", quote(chosen, safe=""))
        response = server.send(case.method, path, **request_of(case))
        if response.is_success and case.method not in ("GET", "HEAD"):
            server.furnish()
        statuses.add(response.status_code)
        assert response.status_code < 500, (case.as_curl_command(), response.text)

    try_one()
    return statuses


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value
)
def test_no_request_made_from_our_description_ends_in_a_server_error(
    server: Any, mode: GenerationMode
) -> None:
    description = server.send("GET", "/openapi.json").json()
    statuses: dict[str, set[int]] = {}
    server.furnish()

    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok()
        described = description["paths"][operation.path][operation.method]
        if mode is GenerationMode.POSITIVE or can_be_wrong(described):
            statuses[operation.label] = try_operation(server, operation, mode)

    if mode is GenerationMode.POSITIVE:
        # Documents of the Iceberg format are only "objects" to our description, so some are never made right.
        reached = {label for label, seen in statuses.items() if seen & {200, 204}}
        inside = {label for label in statuses if "{prefix}" in label}
        assert {label for label in inside if label.startswith(("GET", "HEAD"))} <= reached
