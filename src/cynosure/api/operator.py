"""Operator commands over HTTP: JSON in, progress and result out as JSON lines.

Only ever mounted on `operator.sock` (mode 0600 in the data directory); the permission to open the
socket is the permission to run a command.

A maintainer must not break: a command whose reader is gone is cancelled, so that ctrl-C at the
command line ends the work and not only its display.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from cynosure.api.asgi import Receive
from cynosure.api.messages import NDJSON, Request, Response
from cynosure.api.router import Route
from cynosure.common.errors import BadInput, CynosureError, NotFound
from cynosure.common.progress import Done, Event, Progress, Report, to_failed
from cynosure.common.telemetry.logs import ERROR, Log

_log = Log(__name__)
_encode = msgspec.json.Encoder().encode
_UNREAD_PROGRESS = 256

P = TypeVar("P", bound=Struct)


@dataclass(frozen=True, slots=True)
class OperatorCommand(Generic[P]):
    """Something an operator can ask for: through the running server, or in process when there is none."""

    name: str
    """Dotted, by subject: `store.gc`."""
    params: type[P]
    run: Callable[[P, Report], Awaitable[Any]]
    """Does the work, reports progress, returns a value that msgspec can encode."""
    summary: str = ""


class CommandInfo(Struct, frozen=True):
    """One entry of the list of commands."""

    name: str
    summary: str
    params: dict[str, Any]
    """JSON schema of the parameters."""


class OperatorCommands:
    """The commands of one service, by name."""

    def __init__(self, commands: Iterable[OperatorCommand[Any]] = ()) -> None:
        self._by_name: dict[str, OperatorCommand[Any]] = {}
        self.register_all(commands)

    def register(self, command: OperatorCommand[Any]) -> None:
        """Add a command; its name must be free."""
        if command.name in self._by_name:
            raise ValueError(f"Two operator commands are called {command.name}")
        self._by_name[command.name] = command

    def register_all(self, commands: "Iterable[OperatorCommand[Any]]") -> None:
        """Add several commands."""
        for command in commands:
            self.register(command)

    def get(self, name: str) -> OperatorCommand[Any]:
        """The command of this name, or `NotFound`."""
        command = self._by_name.get(name)
        if command is None:
            raise NotFound(
                "No such operator command",
                fix="Use one of the known commands, or restart the server with this version.",
                name=name,
                known=sorted(self._by_name),
            )
        return command

    def list(self) -> "list[CommandInfo]":
        """All commands with their parameters, by name."""
        return [
            CommandInfo(name, command.summary, msgspec.json.schema(command.params))
            for name, command in sorted(self._by_name.items())
        ]


def operator_routes(commands: OperatorCommands) -> list[Route]:
    """List and run commands."""

    async def list_commands(request: Request) -> Response:
        return Response.json(commands.list())

    async def run_command(request: Request) -> Response:
        command = commands.get(request.params["name"])
        params = _decode_params(command, request.body)
        return Response(200, media_type=NDJSON, chunks=_stream(command, params, request.receive))

    return [
        Route(
            "GET",
            "/operator/v1/commands",
            list_commands,
            operation_id="listOperatorCommands",
            summary="What can be asked for here",
            tags=("operator",),
            responses={200: list[CommandInfo]},
        ),
        Route(
            "POST",
            "/operator/v1/commands/{name}",
            run_command,
            operation_id="runOperatorCommand",
            changes_nothing=True,
            summary="Run a command; progress and result come as JSON lines",
            tags=("operator",),
            request=msgspec.Raw,
            responses={200: Event},
        ),
    ]


def _decode_params(command: OperatorCommand[Any], body: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(body, type=command.params)
    except msgspec.DecodeError as error:
        raise BadInput(
            "The parameters do not fit this command",
            field=command.name,
            fix="See GET /operator/v1/commands for the parameters.",
            reason=str(error),
        ) from error


async def _stream(command: OperatorCommand[Any], params: Any, receive: Receive) -> AsyncIterator[bytes]:
    lines: asyncio.Queue[Progress | None] = asyncio.Queue()

    def report(progress: Progress) -> None:
        if lines.qsize() < _UNREAD_PROGRESS:
            lines.put_nowait(progress)

    work = asyncio.ensure_future(command.run(params, report))
    work.add_done_callback(lambda _: lines.put_nowait(None))
    gone = asyncio.create_task(_wait_until_gone(receive))
    gone.add_done_callback(lambda _: work.cancel())
    try:
        while (progress := await lines.get()) is not None:
            yield _encode(progress) + b"\n"
        yield _encode(await _settle(work, command.name)) + b"\n"
    finally:
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _settle(work: "asyncio.Future[Any]", name: str) -> Event:
    try:
        return Done(msgspec.Raw(_encode(await work)))
    except CynosureError as error:
        return to_failed(error)
    except Exception as error:
        _log.event("operator.crashed", level=ERROR, error=error, with_traceback=True, command=name)
        return to_failed(error)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
