"""A gateway whose statements answer what a test has written: the query API without catalog and engines.

    statements = ScriptedStatements({"SELECT 1": Script.of(pa.table({"a": [1]}))})
    service = make_query_service(statements)               # an ASGI application
    with serve_scripted(statements) as url: ...            # over HTTP, with tokens for everybody

Tokens are `token-of-NAME`. A statement is planned at once and runs until its `hold` is released.
"""

import asyncio
import random
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn

from cynosure.api.app import Service, make_service
from cynosure.api.messages import Request, Response
from cynosure.api.query.errors import QueryErrorEnvelope, respond
from cynosure.api.query.gate import QueryGate
from cynosure.api.query.routes import StatementHandlers, query_routes
from cynosure.api.query.wire import FIRST_PAGE, GatewayConfig
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, CynosureError, NotAuthenticated, NotFound
from cynosure.query.coordinator.statement import Page, Progress, State, StatementInfo, StatementRequest
from cynosure.query.errors import QueryCancelled
from cynosure.server.listen import listen_tcp

if TYPE_CHECKING:
    import pyarrow as pa

TOKEN = "token-of-"


@dataclass
class Script:
    """What a statement answers."""

    pages: "Sequence[pa.Table]" = ()
    error: CynosureError | None = None
    """What it fails with once its pages were fetched."""
    refusal: CynosureError | None = None
    """What `submit` raises."""
    is_held: bool = False
    """Runs until it is ended."""

    @classmethod
    def of(cls, *pages: "pa.Table") -> "Script":
        return cls(pages)


@dataclass
class _Statement:
    id: str
    owner: str
    script: Script
    request: StatementRequest
    state: State = State.RUNNING
    error: CynosureError | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class FakeSession:
    """A user that the catalog knows. Nothing else is asked of it."""

    user: str
    owner: str


class FakeSessions:
    """Knows everybody whose token says who they are."""

    async def open(self, realm: str | None, token: str) -> Any:
        if not token.startswith(TOKEN):
            raise NotAuthenticated("The token is not good", fix="Get another one.")
        user = token.removeprefix(TOKEN)
        return FakeSession(user, f"{realm}/{user}")


class ScriptedStatements:
    """See above."""

    def __init__(self, scripts: Mapping[str, Script] | None = None) -> None:
        self.scripts = dict(scripts or {})
        self.statements: dict[str, _Statement] = {}
        self.requests: list[StatementRequest] = []
        self.canceled: list[str] = []

    async def submit(self, session: Any, request: StatementRequest) -> StatementInfo:
        if request.statement_id in self.statements:
            return self._info(self._own(session, request.statement_id))
        self.requests.append(request)
        script = self.scripts.get(request.sql)
        if script is None:
            raise BadInput("No script for this statement", field="sql", fix="Write one.")
        if script.refusal is not None:
            raise script.refusal
        made = _Statement(request.statement_id or str(uuid.uuid4()), session.owner, script, request)
        if script.error is not None and not script.pages:
            made.state, made.error = State.FAILED, script.error
        elif not script.is_held:
            made.state = State.FINISHED
        self.statements[made.id] = made
        return self._info(made)

    async def get(self, session: Any, statement_id: str, *, wait_s: float = 0.0) -> StatementInfo:
        return self._info(self._own(session, statement_id))

    async def fetch(
        self, session: Any, statement_id: str, number: int, *, wait_s: float = 0.0
    ) -> Page | None:
        found = self._own(session, statement_id)
        if found.state is State.RUNNING:
            try:
                async with asyncio.timeout(wait_s):
                    await found.changed.wait()
            except TimeoutError:
                return None
        if found.error is not None and number >= FIRST_PAGE + len(found.script.pages):
            raise found.error
        if number >= FIRST_PAGE + len(found.script.pages):
            raise NotFound("There is no such page", fix="Follow `next`.")
        at = number - FIRST_PAGE
        is_last = at + 1 == len(found.script.pages) and found.script.error is None
        if at + 1 == len(found.script.pages) and found.script.error is not None:
            found.state, found.error = State.FAILED, found.script.error
        return Page(number, found.script.pages[at].to_batches(), None if is_last else number + 1)

    async def cancel(self, session: Any, statement_id: str) -> StatementInfo:
        found = self._own(session, statement_id)
        self.canceled.append(statement_id)
        if found.state is State.RUNNING:
            found.state, found.error = State.CANCELED, QueryCancelled("The statement was ended")
            found.changed.set()
        return self._info(found)

    def list_own(self, session: Any) -> list[StatementInfo]:
        own = [each for each in self.statements.values() if each.owner == session.owner]
        return [self._info(each) for each in reversed(own)]

    async def close(self) -> None:
        for each in self.statements.values():
            each.changed.set()

    def _own(self, session: Any, statement_id: str | None) -> _Statement:
        found = self.statements.get(statement_id or "")
        if found is None or found.owner != session.owner:
            raise NotFound("There is no such statement", fix="Send it again.")
        return found

    def _info(self, found: _Statement) -> StatementInfo:
        pages = found.script.pages
        return StatementInfo(
            found.id,
            found.state,
            created_us=1_767_225_600_000_000,
            elapsed_ms=12,
            engine="local",
            reason="no cluster",
            schema=pages[0].schema if pages else None,
            rows=sum(each.num_rows for each in pages),
            progress=Progress(2, 1, 10, 1_000, 2_000),
            error=found.error,
            tables=("lake.ns.t",),
            policies=("ns.hide",),
        )


def make_query_service(statements: ScriptedStatements) -> Service:
    """The query API over these statements, with a token and a list of catalogs for everybody who asks."""
    clock = SystemClock()
    config = GatewayConfig("1", "spark", 100, 2**20, 30.0, 60.0, ["application/json"])
    handlers = StatementHandlers(statements, config, clock)

    async def token(request: Request) -> Response:
        return Response.json({"access_token": f"{TOKEN}alice", "token_type": "bearer", "expires_in": 3600})

    async def catalogs(request: Request) -> Response:
        return Response.json({"catalogs": [{"name": "lake", "type": "INTERNAL"}]})

    service = make_service(
        [
            *query_routes(handlers),
            Route("POST", "/api/catalog/v1/oauth/tokens", token, operation_id="token", is_public=True),
            Route("GET", "/api/management/v1/catalogs", catalogs, operation_id="cats", is_public=True),
        ],
        title="test",
        version="1",
        clock=clock,
        rng=random.Random(1),
        gate=QueryGate(FakeSessions()),
        respond=respond,
        error_type=QueryErrorEnvelope,
    )
    return service


@contextmanager
def serve_scripted(statements: ScriptedStatements) -> Iterator[str]:
    """The address of a server with these statements, which is also the catalog's."""
    service = make_query_service(statements)
    with listen_tcp("127.0.0.1", 0) as listener:
        config = uvicorn.Config(service.app, lifespan="off", log_config=None, interface="asgi3", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.force_exit = server.should_exit = True
            thread.join(10)


def error_of(body: bytes) -> dict[str, Any]:
    """The error in an answer."""
    found: dict[str, Any] = msgspec.json.decode(body)["error"]
    return found
