"""Requests made from our own description, right and wrong ones, get only answers that it describes.

As root, who may do almost everything, and as a principal without any right, to whom nothing may happen. What
carries an Idempotency-Key is sent twice, and gets the same answer twice.
"""

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

from tests.api.world import BASE, World, open_world

NAMES = {
    "prefix": ["lake"],
    "namespace": ["a", "a\x1fb"],
    "table": ["t"],
    "view": ["v"],
    "generic-table": ["g"],
    "policy-name": ["p"],
    "catalogName": ["lake", "pond"],
    "principalName": ["alice"],
    "principalRoleName": ["engineers"],
    "catalogRoleName": ["readers"],
}
"""Names that exist: with names made from the description alone, requests would end at the first lookup."""
OPEN_TO_ALL = {
    "getToken",
    "getTokenKeys",
    "getWellKnownTokenKeys",
    "getOpenApi",
    "whoAmI",
    "explainAccess",
    "getManagementConfig",
    "commitTransaction",  # of no table at all
}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}],
}
VIEW = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [],
}


class Server:
    """A furnished world, for tests that are not async themselves."""

    def __init__(self, runner: asyncio.Runner, world: World, root: httpx.AsyncClient) -> None:
        self._runner = runner
        self._world = world
        self._root = root
        inside = "/api/catalog/v1/lake/namespaces"
        polaris = "/api/catalog/polaris/v1/lake/namespaces/a"
        policies, generic = f"{polaris}/policies", f"{polaris}/generic-tables"
        managed = "/api/management/v1"
        self._furniture: list[tuple[str, str, Any]] = [
            ("POST", f"{managed}/catalogs", world.catalog("lake")),
            ("POST", f"{managed}/catalogs", world.catalog("pond")),
            # Who may manage a catalog may not by itself use its data.
            (
                "PUT",
                f"{managed}/catalogs/lake/catalog-roles/catalog_admin/grants",
                {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}},
            ),
            ("POST", inside, {"namespace": ["a"]}),
            ("POST", inside, {"namespace": ["a", "b"]}),
            ("POST", f"{inside}/a/tables", {"name": "t", "schema": SCHEMA}),
            ("POST", f"{inside}/a/views", {"name": "v", "schema": SCHEMA, "view-version": VIEW}),
            ("POST", generic, {"name": "g", "format": "delta"}),
            ("POST", policies, {"name": "p", "type": "system.data-compaction", "content": '{"enable":true}'}),
            ("POST", f"{managed}/principals", {"principal": {"name": "alice"}}),
            ("POST", f"{managed}/principal-roles", {"principalRole": {"name": "engineers"}}),
            ("POST", f"{managed}/catalogs/lake/catalog-roles", {"catalogRole": {"name": "readers"}}),
        ]

        self._looked_at = [
            inside,
            f"{inside}?parent=a",
            f"{inside}/a",
            f"{inside}/a/tables",
            f"{inside}/a/tables/t",
            f"{inside}/a/views/v",
            generic,
            f"{generic}/g",
            policies,
            f"{policies}/p",
            f"{managed}/catalogs",
            f"{managed}/principals",
            f"{managed}/principal-roles",
            f"{managed}/principal-roles/service_admin/principals",
            f"{managed}/catalogs/lake/catalog-roles",
            f"{managed}/catalogs/lake/catalog-roles/catalog_admin/grants",
            f"{managed}/catalogs/lake/catalog-roles/catalog_admin/principal-roles",
        ]

    def furnish(self) -> None:
        """Put back what earlier requests may have taken away."""

        async def put_back() -> None:
            for method, path, body in self._furniture:
                await self._root.request(method, BASE + path, json=body)

        self._runner.run(put_back())

    def look(self) -> list[Any]:
        """All that is there, as root sees it."""

        async def read() -> list[Any]:
            return [(await self._root.get(BASE + path)).json() for path in self._looked_at]

        return self._runner.run(read())

    def send(self, client: httpx.AsyncClient, method: str, path: str, **request: Any) -> httpx.Response:
        return self._runner.run(client.request(method, BASE + path, **request))

    def login(self, name: str | None) -> httpx.AsyncClient:
        """The root, or a new principal of this name."""
        if name is None:
            return self._root

        async def make() -> httpx.AsyncClient:
            who = await self._world.admin(self._root).create_principal(name)
            return await self._world.login(who)

        return self._runner.run(make())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    async def start() -> tuple[AsyncExitStack, World, httpx.AsyncClient]:
        stack = AsyncExitStack()
        world = await stack.enter_async_context(open_world(tmp_path))
        return stack, world, await stack.enter_async_context(await world.login(world.root))

    with asyncio.Runner() as runner:
        stack, world, root = runner.run(start())
        yield Server(runner, world, root)
        runner.run(stack.aclose())


def request_of(case: Case) -> dict[str, Any]:
    request: dict[str, Any] = {"headers": {}}
    key = (case.headers or {}).get("Idempotency-Key")
    # What is no header at all ends in the client, or in the HTTP server in front of the application.
    if isinstance(key, str) and key.isascii() and key.isprintable():
        request["headers"]["idempotency-key"] = key
    if case.query:
        # Long polling is described by how long it may take; nobody waits for it here.
        asked = {**case.query, **({"wait": 0} if _is_wait(case.query.get("wait")) else {})}
        request["params"] = asked
    if case.body is not NOT_SET:
        is_form = (case.media_type or "").endswith("form-urlencoded")
        if is_form and isinstance(case.body, dict):
            request["data"] = {str(name): str(value) for name, value in case.body.items()}
            return request
        is_bytes = isinstance(case.body, bytes)
        request["content"] = case.body if is_bytes else json.dumps(case.body, default=str)
        request["headers"]["content-type"] = case.media_type or "application/json"
    return request


def _is_wait(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def can_be_wrong(described: dict[str, Any]) -> bool:
    """What takes nothing but text cannot be asked for in a way its description forbids."""
    schemas = [parameter["schema"] for parameter in described.get("parameters", ())]
    return "requestBody" in described or any(schema.get("type") != "string" for schema in schemas)


def try_operation(
    server: Server, client: httpx.AsyncClient, operation: Any, mode: GenerationMode, examples: int
) -> set[int]:
    statuses: set[int] = set()
    described = operation.definition.raw["responses"]
    parameters = operation.definition.raw.get("parameters", ())
    takes_key = any(parameter["name"] == "Idempotency-Key" for parameter in parameters)
    fresh_keys = itertools.count()

    @settings(
        max_examples=examples,
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
        request = request_of(case)
        if takes_key and data.draw(st.booleans()):
            request["headers"]["idempotency-key"] = str(next(fresh_keys))
        response = server.send(client, case.method, path, **request)
        if "idempotency-key" in request["headers"] and response.status_code < 500:
            again = server.send(client, case.method, path, **request)
            assert (again.status_code, again.text) == (response.status_code, response.text), path
            assert again.headers.get("idempotency-replayed") == "true" or not response.is_success, path
        if response.is_success and case.method not in ("GET", "HEAD"):
            server.furnish()
        statuses.add(response.status_code)
        shown = (case.as_curl_command(), response.status_code, response.text)
        assert response.status_code < 500 or response.status_code == 501, shown
        # An empty or odd name makes another path of it, which has no such method.
        if path.count("/") == operation.path.count("/") and "//" not in path and not path.endswith("/"):
            assert str(response.status_code) in described, shown
            if case.method != "HEAD":
                operation.validate_response(response)

    try_one()
    return statuses


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("who", "mode", "examples"),
    [
        (None, GenerationMode.POSITIVE, 6),
        (None, GenerationMode.NEGATIVE, 3),
        ("nobody", GenerationMode.POSITIVE, 2),
    ],
    ids=["root-right", "root-wrong", "nobody-right"],
)
def test_every_request_made_from_our_description_gets_an_answer_that_it_describes(
    server: Server, who: str | None, mode: GenerationMode, examples: int
) -> None:
    server.furnish()
    client = server.login(who)
    description = server.send(client, "GET", "/openapi.json").json()
    statuses: dict[str, set[int]] = {}
    before = server.look()

    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok()
        described = description["paths"][operation.path][operation.method]
        if mode is GenerationMode.POSITIVE or can_be_wrong(described):
            name = described["operationId"]
            statuses[name] = try_operation(server, client, operation, mode, examples)

    succeeded = {name for name, seen in statuses.items() if seen & {200, 201, 204}}
    assert len(statuses) > 40
    if who is not None:
        assert succeeded <= OPEN_TO_ALL
        assert server.look() == before
    elif mode is GenerationMode.POSITIVE:
        # Documents of the Iceberg format are only "objects" to our description, so some are never made right.
        reads = {
            operation["operationId"]
            for item in description["paths"].values()
            for method, operation in item.items()
            if method in ("get", "head")
        }
        # And nobody guesses the id of a plan, a task or a drop.
        by_id = {"fetchPlanningResult", "getTask", "getTaskHistory"}
        by_id |= {"loadDropped", "loadTombstone", "loadTombstoneCredentials"}
        # Behind the catalog that is asked about there is no remote.
        assert reads - succeeded <= {"getConfig", "loadRemoteStatus", *by_id}
