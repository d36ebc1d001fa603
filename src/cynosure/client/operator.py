"""The operator socket of a server on this machine.

A maintainer must not break: "nobody answers" is a value (`None`), so that the command line can do the
work itself; anything else that goes wrong is an error.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from cynosure.client.errors import from_failed
from cynosure.client.http import HttpClient
from cynosure.client.unix_socket import is_answering, short_path
from cynosure.common.clock import Clock
from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.common.progress import Done, Event, Failed, Progress, Report

_decode_event = msgspec.json.Decoder(Event).decode


class OperatorClient:
    """Runs commands in the server behind an operator socket."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def run(self, name: str, params: Any, report: Report) -> msgspec.Raw:
        """Run a command there; progress goes to `report`, the result is returned as JSON."""
        path = f"/operator/v1/commands/{quote(name, safe='')}"
        last: Done | Failed | None = None
        try:
            async with self._http.stream("POST", path, body=params) as lines:
                async for line in lines:
                    event: Event = _decode_event(line)
                    if isinstance(event, Progress):
                        report(event)
                    else:
                        last = event
        except Unavailable as error:
            if last is None:
                raise _cut_off(name) from error
        if isinstance(last, Failed):
            raise from_failed(last)
        if last is None:
            raise _cut_off(name)
        return last.value


def _cut_off(command: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        "The server ended before the command did",
        fix="Start the server, look at the state and run the command again if needed.",
        command=command,
    )


@asynccontextmanager
async def find_operator(path: Path, clock: Clock, rng: random.Random) -> AsyncIterator[OperatorClient | None]:
    """The server behind this operator socket, or `None` when there is none."""
    if not is_answering(path):
        yield None
        return
    with short_path(path) as name:
        async with HttpClient("http://operator", clock=clock, rng=rng, unix_socket=name) as http:
            yield OperatorClient(http)
