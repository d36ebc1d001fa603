"""Routes with everything around them: the ASGI application of a service.

A maintainer must not break: the order of the middleware (`cynosure.api.middleware`).
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cynosure.api.asgi import App
from cynosure.api.errors import ErrorEnvelope, Respond, to_response
from cynosure.api.gate import Gate
from cynosure.api.middleware.errors import Errors
from cynosure.api.middleware.limits import Limits
from cynosure.api.middleware.telemetry import AccessLog, Telemetry
from cynosure.api.openapi import TOKENS, openapi_route
from cynosure.api.router import Once, Route, Router
from cynosure.common.clock import Clock


class RequestLimits(NamedTuple):
    """Bounds of one request."""

    max_body_bytes: int = 10 * 2**20
    body_timeout_s: float = 30.0
    request_timeout_s: float = 90.0


class Service(NamedTuple):
    """A service ready to be served."""

    app: App
    """Answers HTTP only: start and end of the process are not ASGI's business here."""
    routes: Sequence[Route]


def make_service(
    routes: Sequence[Route],
    *,
    title: str,
    version: str,
    clock: Clock,
    rng: random.Random,
    limits: RequestLimits = RequestLimits(),  # noqa: B008 - immutable
    access_log: AccessLog = "notable",
    gate: Gate | None = None,
    once: Once | None = None,
    schemes: Mapping[str, Any] = TOKENS,
    respond: Respond = to_response,
    error_type: Any = ErrorEnvelope,
) -> Service:
    """Put router, OpenAPI description and middleware together. Metrics must have been started before.

    `gate` may be left out where all routes are public; `schemes` says how it knows its callers. Without
    `once`, Idempotency-Keys are ignored. `respond` answers errors, with bodies of `error_type`.
    """
    described = [
        *routes,
        openapi_route(
            routes,
            title=title,
            version=version,
            schemes=schemes,
            has_keys=once is not None,
            error_type=error_type,
        ),
    ]
    inner: App = Limits(Router(described, gate, once), clock, **limits._asdict())
    return Service(Telemetry(Errors(inner, respond), clock, rng, access_log=access_log), described)
