"""Requests made from our own OpenAPI document, right and wrong ones, are never answered with a 5xx."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

from cynosure.api.app import make_service
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.common.clock import SystemClock
from cynosure.testing.small_catalog import make_catalog, open_directory_in

EXAMPLES = 8
NAMES = {"prefix": ["lake"], "namespace": ["a", "a\x1fb"], "table": ["t"], "view": ["v"]}
"""Names that exist: with names made from the schema alone, every request would end at the first lookup."""

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [],
}
FURNITURE = [
    ("namespaces", {"namespace": ["a"]}),
    ("namespaces", {"namespace": ["a", "b"]}),
    ("namespaces/a/tables", {"name": "t", "schema": SCHEMA}),
    ("namespaces/a/views", {"name": "v", "schema": SCHEMA, "view-version": VERSION}),
]


class Server:
    """A service with one furnished catalog, for tests that are not async themselves."""

    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient) -> None:
        self._runner = runner
        self._client = client

    def furnish(self) -> None:
        """Put back what earlier requests may have dropped."""
        for path, body in FURNITURE:
            self._runner.run(self._client.post(f"/api/catalog/v1/lake/{path}", json=body))

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **request))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("warehouse")

    async def start() -> tuple[AsyncExitStack, httpx.AsyncClient]:
        stack = AsyncExitStack()
        directory = await stack.enter_async_context(open_directory_in(root))
        await make_catalog(directory, root)
        service = make_service(
            iceberg_routes(directory), title="test", version="1", clock=SystemClock(), rng=random.Random(1)
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        client = httpx.AsyncClient(transport=transport, base_url="http://test")
        return stack, await stack.enter_async_context(client)

    with asyncio.Runner() as runner:
        stack, client = runner.run(start())
        yield Server(runner, client)
        runner.run(stack.aclose())


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


def try_operation(server: Server, operation: Any, mode: GenerationMode) -> set[int]:
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
    server: Server, mode: GenerationMode
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
