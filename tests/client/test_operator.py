"""The operator client against a real server on a real Unix socket."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from msgspec import Struct

from cynosure.api.app import make_service
from cynosure.api.operator import OperatorCommand, OperatorCommands, operator_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.errors import NoSuchCatalog
from cynosure.client.errors import ServerFailed, from_failed
from cynosure.client.operator import find_operator
from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, Conflict, NotFound, OutcomeUnknown, Unavailable
from cynosure.common.progress import Progress, Report, ignore_progress, to_failed
from cynosure.server.http_server import HttpServer
from cynosure.server.listen import listen_operator

pytestmark = pytest.mark.anyio


class Params(Struct):
    what: str = ""


async def work(params: Params, report: Report) -> Any:
    for number in (1, 2):
        report(Progress("working", number, 2))
        await asyncio.sleep(0)
    match params.what:
        case "conflict":
            raise Conflict("The head has moved", fix="Look again.", head=7)
        case "unavailable":
            raise Unavailable("The database does not answer")
        case "input":
            raise BadInput("Wrong", field="what", fix="Change it.")
        case "crash":
            raise ZeroDivisionError
        case "hang":
            await asyncio.Event().wait()
    return {"did": params.what}


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[HttpServer]:
    commands = OperatorCommands([OperatorCommand("work", Params, work)])
    service = make_service(
        operator_routes(commands),
        title="t",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        gate=OperatorGate(),
    )
    config = uvicorn.Config(service.app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)  # type: ignore[arg-type]
    server = HttpServer(config)
    with listen_operator(path) as listener:
        task = asyncio.create_task(server.run_until_stopped(listener))
        await server.listening.wait()
        try:
            yield server
        finally:
            server.should_exit = True
            await task


def find(path: Path):
    return find_operator(path, SystemClock(), random.Random(1))


async def test_progress_arrives_and_then_the_result(tmp_path: Path) -> None:
    seen: list[Progress] = []

    async with serving(tmp_path / "o.sock"), find(tmp_path / "o.sock") as operator:
        result = await operator.run("work", Params("much"), seen.append)

    assert bytes(result) == b'{"did":"much"}'
    assert [(found.done, found.total) for found in seen] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("what", "expected"), [("conflict", Conflict), ("unavailable", Unavailable), ("input", BadInput)]
)
async def test_errors_come_back_as_what_they_were(
    tmp_path: Path, what: str, expected: type[Exception]
) -> None:
    async with serving(tmp_path / "o.sock"), find(tmp_path / "o.sock") as operator:
        with pytest.raises(expected) as caught:
            await operator.run("work", Params(what), ignore_progress)

    assert type(caught.value) is expected


async def test_details_and_fix_come_along(tmp_path: Path) -> None:
    async with serving(tmp_path / "o.sock"), find(tmp_path / "o.sock") as operator:
        with pytest.raises(Conflict) as caught:
            await operator.run("work", Params("conflict"), ignore_progress)

    assert (caught.value.fix, caught.value.details) == ("Look again.", {"head": 7})


async def test_a_crash_there_is_a_failed_server_here(tmp_path: Path) -> None:
    async with serving(tmp_path / "o.sock"), find(tmp_path / "o.sock") as operator:
        with pytest.raises(ServerFailed):
            await operator.run("work", Params("crash"), ignore_progress)
        with pytest.raises(NotFound):
            await operator.run("nope", Params(), ignore_progress)


async def test_a_server_that_ends_in_the_middle_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    async with serving(tmp_path / "o.sock") as server, find(tmp_path / "o.sock") as operator:
        began = asyncio.Event()
        running = asyncio.create_task(operator.run("work", Params("hang"), lambda _: began.set()))
        await began.wait()
        for connection in list(server.server_state.connections):
            connection.transport.abort()

        with pytest.raises(OutcomeUnknown):
            await running


async def test_nobody_there_is_a_value(tmp_path: Path) -> None:
    async with find(tmp_path / "o.sock") as operator:
        assert operator is None


def test_an_error_with_a_constructor_of_its_own_comes_back_as_what_it_means() -> None:
    failed = to_failed(NoSuchCatalog("lake"))

    error = from_failed(failed)

    assert type(error) is NotFound
    assert (error.message, error.details) == ("Catalog does not exist", {"name": "lake"})
