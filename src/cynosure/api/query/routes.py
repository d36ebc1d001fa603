"""The routes of the query API.

A maintainer must not break: a statement is answered to the user that sent it and to nobody else (the
coordinator knows whose it is), and no wait outlasts the request.
"""

import asyncio
from typing import Final

from cynosure.api.messages import Request, Response
from cynosure.api.query.errors import failed_statement
from cynosure.api.query.gate import session_of
from cynosure.api.query.pages import render_page, wants_arrow
from cynosure.api.query.wire import (
    BASE,
    FIRST_PAGE,
    GatewayConfig,
    ResultPage,
    StatementAnswer,
    StatementBody,
    StatementList,
    WaitQuery,
    to_answer,
)
from cynosure.api.router import Route
from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, CynosureError, NotFound
from cynosure.query.catalog_access.port import CatalogSession
from cynosure.query.coordinator.statement import State, StatementInfo, Statements
from cynosure.query.errors import EngineUnavailable

_TAGS: Final = ("query",)
_EARLY: Final = frozenset({State.QUEUED, State.PLANNING})
_MAX_PAGE_DIGITS: Final = 9


class StatementHandlers:
    """The handlers over the coordinator's statements."""

    def __init__(self, statements: Statements, config: GatewayConfig, clock: Clock) -> None:
        self._statements = statements
        self._config = config
        self._clock = clock
        self._is_stopping = False

    def begin_shutdown(self) -> None:
        """From now on no new statements are taken, and nobody is kept waiting."""
        self._is_stopping = True

    async def submit(self, request: Request) -> Response:
        """Take a statement, and wait until it is planned if asked to."""
        if self._is_stopping:
            raise EngineUnavailable("The gateway is shutting down", fix="Send the statement again.")
        body: StatementBody = request.body
        session = session_of(request)
        give_up_s = self._clock.monotonic_s() + self._allowed_s(request, body.wait)
        info = await self._statements.submit(session, body.to_request())
        info = await self._wait_while_early(session, info, give_up_s)
        answer = to_answer(info)
        status = 202 if info.state in _EARLY else 200
        headers = [(b"location", f"{BASE}/statements/{info.id}".encode("ascii"))]
        return Response.json(answer, status=status, headers=headers)

    async def load(self, request: Request) -> Response:
        """A statement as it is, or when something about it is new."""
        wait_s = self._allowed_s(request, request.query.wait)
        info = await self._statements.get(session_of(request), request.params["statement"], wait_s=wait_s)
        return Response.json(to_answer(info))

    async def list(self, request: Request) -> Response:
        """The user's statements, the newest first."""
        found = self._statements.list_own(session_of(request))
        return Response.json(StatementList([to_answer(each) for each in found]))

    async def fetch(self, request: Request) -> Response:
        """A page of results."""
        session, statement_id = session_of(request), request.params["statement"]
        number = _read_number(request.params["page"])
        wait_s = self._allowed_s(request, request.query.wait)
        # Asked for first: of a statement that is not theirs, a user hears the same whatever page they ask
        # for.
        await self._statements.get(session, statement_id)
        try:
            page = await self._statements.fetch(session, statement_id, number, wait_s=wait_s)
        except CynosureError as error:
            info = await self._statements.get(session, statement_id)
            if info.error is not None:
                return failed_statement(info.error)
            if isinstance(error, NotFound | BadInput):
                raise
            return failed_statement(error)
        schema = page.batches[0].schema if page is not None and page.batches else None
        if page is None or schema is None:
            info = await self._statements.get(session, statement_id)
            schema = info.schema
            if page is None or schema is None:
                return Response.json(to_answer(info), status=202)
        is_arrow = wants_arrow(request.find_header(b"accept"))
        # In a thread: a large page takes long enough for others to notice.
        return await asyncio.to_thread(render_page, page, schema, statement_id, is_arrow=is_arrow)

    async def cancel(self, request: Request) -> Response:
        """End a statement."""
        info = await self._statements.cancel(session_of(request), request.params["statement"])
        return Response.json(to_answer(info))

    async def load_config(self, request: Request) -> Response:
        """What clients may want to know."""
        return Response.json(self._config)

    async def _wait_while_early(
        self, session: CatalogSession, info: StatementInfo, give_up_s: float
    ) -> StatementInfo:
        while info.state in _EARLY and (left_s := give_up_s - self._clock.monotonic_s()) > 0.0:
            info = await self._statements.get(session, info.id, wait_s=left_s)
        return info

    def _allowed_s(self, request: Request, wanted_s: float) -> float:
        if self._is_stopping:
            return 0.0
        return request.cut_wait_s(wanted_s, now_s=self._clock.monotonic_s())


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_PAGE_DIGITS or int(text) < FIRST_PAGE:
        raise BadInput(
            "Not the number of a page",
            field="page",
            fix=f"Begin with {FIRST_PAGE}, and follow `next`.",
        )
    return int(text)


def query_routes(handlers: StatementHandlers) -> list[Route]:
    """All routes of the API."""
    one = f"{BASE}/statements/{{statement}}"
    return [
        Route(
            "GET",
            f"{BASE}/config",
            handlers.load_config,
            operation_id="getQueryConfig",
            summary="Limits and formats of this gateway",
            tags=_TAGS,
            responses={200: GatewayConfig},
        ),
        Route(
            "POST",
            f"{BASE}/statements",
            handlers.submit,
            operation_id="submitStatement",
            summary="Run a SQL statement",
            tags=_TAGS,
            request=StatementBody,
            changes_nothing=True,
            responses={200: StatementAnswer, 202: StatementAnswer},
            errors=(429,),
        ),
        Route(
            "GET",
            f"{BASE}/statements",
            handlers.list,
            operation_id="listStatements",
            summary="Your statements that are remembered, the newest first",
            tags=_TAGS,
            responses={200: StatementList},
        ),
        Route(
            "GET",
            one,
            handlers.load,
            operation_id="getStatement",
            summary="A statement as it is, or when something about it is new (`wait`)",
            tags=_TAGS,
            query=WaitQuery,
            responses={200: StatementAnswer},
        ),
        Route(
            "DELETE",
            one,
            handlers.cancel,
            operation_id="cancelStatement",
            summary="End a statement; one that has ended stays as it is",
            tags=_TAGS,
            changes_nothing=True,
            responses={200: StatementAnswer},
        ),
        Route(
            "GET",
            f"{one}/results/{{page}}",
            handlers.fetch,
            operation_id="getResults",
            summary="A page of results, as JSON or as a stream of Arrow; 202 while it is not ready",
            tags=_TAGS,
            query=WaitQuery,
            headers={"Accept": {"type": "string"}},
            responses={200: ResultPage, 202: StatementAnswer},
            errors=(409, 422),
        ),
    ]
