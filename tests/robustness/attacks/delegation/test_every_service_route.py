"""Every route of the delegation service: as a stranger, and with whatever its description allows or not."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import jwt
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET

from cynosure.auth.tokens.signing_keys import generate_private
from cynosure.common.clock import SystemClock
from cynosure.testing.service_tokens import TokenMaker
from cynosure.testing.small_delegation import SmallDelegation
from tests.delegation.http.conftest import BASE, ONCE, World, payload


class Asked:
    """A service at work, for tests that are not async themselves."""

    def __init__(self, runner: asyncio.Runner, world: World) -> None:
        self._runner = runner
        self.world = world

    def send(self, method: str, path: str, token: str | None = None, **request: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with self.world.client(token=token) as http:
                return await http.request(method, path, **request)

        return self._runner.run(ask())


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    async def start() -> World:
        world = World(SmallDelegation(ONCE), TokenMaker(SystemClock(), generate_private()))
        await world.work()
        return world

    with asyncio.Runner() as runner:
        asked = Asked(runner, runner.run(start()))
        yield asked
        runner.run(asked.world.small.close())


def list_operations(asked: Asked) -> list[tuple[str, str, str]]:
    description = asked.send("GET", "/openapi.json").json()
    return [
        (method.upper(), path, operation["operationId"])
        for path, item in description["paths"].items()
        for method, operation in item.items()
        if path.startswith(BASE)
    ]


def make_tokens(catalog: TokenMaker) -> dict[str, str]:
    good = catalog.sign()
    claims = jwt.decode(good, options={"verify_signature": False})
    header = {name: value for name, value in jwt.get_unverified_header(good).items() if name != "alg"}
    other = TokenMaker(SystemClock(), generate_private())
    public = catalog.signer.private.public_key().public_numbers()
    return {
        "none": " ",
        "garbage": "a.b.c",
        "unsigned": jwt.encode(claims, None, algorithm="none", headers=header),
        "signed with what everybody knows": jwt.encode(
            claims, str(public.n), algorithm="HS256", headers=header
        ),
        "another key": other.sign(),
        "another realm": catalog.sign(realm="other"),
        "no scope": catalog.sign(scope=""),
        "part of the scope": catalog.sign(scope="execute_task execute_tasks2 EXECUTE_TASKS"),
        "another audience": catalog.sign(aud="catalog"),
        "cut": good[:-4],
    }


def test_a_stranger_gets_nothing_from_any_route(asked: Asked) -> None:
    task = asked.send("POST", f"{BASE}/tasks", json=payload("known")).json()["delegation_task_id"]
    operations = list_operations(asked)
    assert len(operations) >= 7
    let_in = {}

    for kind, token in make_tokens(asked.world.catalog).items():
        for method, path, name in operations:
            body = {"json": payload("other")} if method == "POST" else {}
            answer = asked.send(method, path.replace("{task_id}", task), token, **body)
            if answer.status_code not in (401, 403) or task in answer.text:
                let_in[kind, name] = (answer.status_code, answer.text)

    assert let_in == {}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_whatever_is_sent_is_answered_as_described(asked: Asked, mode: GenerationMode) -> None:
    description = asked.send("GET", "/openapi.json").json()
    seen: dict[str, set[int]] = {}
    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok()
        raw = operation.definition.raw
        if not operation.path.startswith(BASE) or (mode is GenerationMode.NEGATIVE and "{" in operation.path):
            continue
        seen[raw["operationId"]] = try_operation(asked, operation, mode)

    assert len(seen) >= (7 if mode is GenerationMode.POSITIVE else 3)


def try_operation(asked: Asked, operation: Any, mode: GenerationMode) -> set[int]:
    statuses: set[int] = set()

    @settings(
        max_examples=12, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def try_one(case: Case) -> None:
        path = operation.path
        for name, made in (case.path_parameters or {}).items():
            path = path.replace(f"{{{name}}}", quote(str(made), safe=""))
        request: dict[str, Any] = {}
        if case.query:
            is_long = isinstance(case.query.get("wait"), int | float)
            request["params"] = {**case.query, **({"wait": 0} if is_long else {})}
        if case.body is not NOT_SET:
            body = case.body
            request["content"] = body if isinstance(body, bytes) else json.dumps(body, default=str)
            request["headers"] = {"content-type": case.media_type or "application/json"}
        answer = asked.send(case.method, path, **request)
        statuses.add(answer.status_code)
        shown = (case.as_curl_command(), answer.status_code, answer.text)
        assert answer.status_code < 500, shown
        if "//" not in path and not path.endswith("/"):
            assert str(answer.status_code) in operation.definition.raw["responses"], shown

    try_one()
    return statuses
