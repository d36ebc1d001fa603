import asyncio
import json
from typing import Any

import pytest
from msgspec import Struct

from cynosure.api.operator import OperatorCommand, OperatorCommands, operator_routes
from cynosure.common.errors import Conflict
from cynosure.common.progress import Progress, Report

pytestmark = pytest.mark.anyio


class Count(Struct, forbid_unknown_fields=True):
    to: int


async def count(params: Count, report: Report) -> dict[str, int]:
    for number in range(params.to):
        report(Progress("counting", number + 1, params.to))
    return {"counted": params.to}


async def refuse(params: Count, report: Report) -> None:
    raise Conflict("The head has moved", fix="Look again.", head=7)


async def crash(params: Count, report: Report) -> None:
    raise ZeroDivisionError("internal")


COMMANDS = OperatorCommands(
    [
        OperatorCommand("count", Count, count),
        OperatorCommand("refuse", Count, refuse),
        OperatorCommand("crash", Count, crash),
    ]
)


async def run(client, name: str, params: Any) -> list[Any]:
    answer = await client.post(f"/operator/v1/commands/{name}", json=params)
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_progress_comes_first_and_the_result_last(client_for) -> None:
    lines = await run(client_for(*operator_routes(COMMANDS)), "count", {"to": 2})

    assert lines == [
        {"event": "progress", "message": "counting", "done": 1, "total": 2},
        {"event": "progress", "message": "counting", "done": 2, "total": 2},
        {"event": "done", "value": {"counted": 2}},
    ]


async def test_an_error_is_the_last_line_with_all_that_an_operator_needs(client_for) -> None:
    lines = await run(client_for(*operator_routes(COMMANDS)), "refuse", {"to": 1})

    assert lines == [
        {
            "event": "failed",
            "error": "Conflict",
            "message": "The head has moved",
            "fix": "Look again.",
            "details": {"head": 7},
        }
    ]


async def test_a_crash_is_told_without_its_insides(client_for) -> None:
    (line,) = await run(client_for(*operator_routes(COMMANDS)), "crash", {"to": 1})

    assert (line["event"], line["error"]) == ("failed", "ZeroDivisionError")
    assert "internal" not in json.dumps(line)


async def test_a_slow_reader_loses_progress_but_never_the_result(client_for) -> None:
    lines = await run(client_for(*operator_routes(COMMANDS)), "count", {"to": 5000})

    assert len(lines) < 1000
    assert lines[-1] == {"event": "done", "value": {"counted": 5000}}


@pytest.mark.parametrize(
    ("name", "params", "status"),
    [("nope", {"to": 1}, 404), ("count", {"to": "x"}, 400), ("count", {"to": 1, "typo": 2}, 400)],
)
async def test_wrong_commands_and_parameters_are_refused(
    client_for, name: str, params: Any, status: int
) -> None:
    client = client_for(*operator_routes(COMMANDS))

    answer = await client.post(f"/operator/v1/commands/{name}", json=params)

    assert answer.status_code == status


async def test_commands_can_be_listed_with_their_parameters(client_for) -> None:
    answer = await client_for(*operator_routes(COMMANDS)).get("/operator/v1/commands")

    assert [found["name"] for found in answer.json()] == ["count", "crash", "refuse"]
    assert "to" in json.dumps(answer.json()[0]["params"])


async def test_a_command_whose_reader_left_is_cancelled(client_for) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(params: Count, report: Report) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    app = client_for(
        *operator_routes(OperatorCommands([OperatorCommand("endless", Count, endless)]))
    )._transport.app
    body = [{"type": "http.request", "body": b'{"to": 1}'}]

    async def receive() -> Any:
        if body:
            return body.pop()
        await started.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": b"/operator/v1/commands/endless",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"9")],
    }
    with pytest.raises(asyncio.CancelledError):
        await app(scope, receive, send)

    assert cancelled.is_set()
