"""Requests with an Idempotency-Key: between the router and `cynosure.idempotency`, which knows no HTTP.

Must not break: a key is bound to everything that makes a request what it is. That is realm, catalog, method,
path and caller (its scope), body and query (its payload). Headers are not: what they change is how an answer
is given, such as with or without credentials.
"""

from msgspec.structs import replace

from cynosure.api import asgi
from cynosure.api.errors import to_response
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.auth.request_key import RequestKey
from cynosure.common.errors import CynosureError
from cynosure.idempotency.engine import Idempotency
from cynosure.idempotency.fingerprint import bind, fingerprint
from cynosure.idempotency.keys import canonical_path, check_key, hash_scope
from cynosure.idempotency.record import Answer
from cynosure.idempotency.reservations import Claim
from cynosure.persistence.spi import ObjId

_HEADER = b"idempotency-key"
_REPLAYED = (b"idempotency-replayed", b"true")


class KeyedRequests:
    """Answers requests that carry a key."""

    def __init__(self, engine: Idempotency) -> None:
        self._engine = engine

    def stop_waiting(self) -> None:
        """See `Idempotency.stop_waiting`."""
        self._engine.stop_waiting()

    async def answer(self, route: Route, request: Request, caller: Caller, body: bytes) -> Response:
        """See `Once.answer`."""
        scope = request.scope

        async def execute(key: RequestKey) -> Answer:
            scope[asgi.CALLER] = replace(caller, key=key)
            response = await route.handler(request)
            assert response.chunks is None  # noqa: S101 - what changes something is answered at once
            return Answer(response.status, tuple(response.headers), response.body)

        outcome = await self._engine.run(claim_of(route, request, caller, body), execute)
        response = Response(outcome.answer.status)
        response.headers = list(outcome.answer.headers)
        response.body = outcome.answer.body
        if outcome.is_replayed:
            response.headers.append(_REPLAYED)
        return response


def claim_of(route: Route, request: Request, caller: Caller, body: bytes) -> Claim:
    """What a request claims: to be the one with this key. `BadInput` when the key breaks the rule."""
    # White space around a field's value is not part of it (RFC 9110, 5.5), and not every server takes it off.
    key = check_key([value.strip(b" \t") for value in asgi.list_values(request.scope, _HEADER)])
    path = canonical_path(route.path, request.params)
    identity = caller.identity
    key_hash = hash_scope(
        realm=caller.realm,
        catalog=request.params.get("prefix", ""),
        method=route.method,
        path=path,
        principal_id=caller.principal_id,
        actor_id=ObjId(0) if identity is None else identity.actor_id,
        key=key,
    )
    return Claim(
        key=key,
        key_hash=key_hash,
        payload_hash=bind(fingerprint(body, request.query), key),
        realm=caller.realm,
        method=route.method,
        path=path,
        principal=caller.principal,
        is_commit=route.is_commit,
    )


def describe(error: CynosureError) -> Answer:
    """An error as it is answered; the same text whoever asks again, so without the id of a request."""
    response = to_response(error, "")
    return Answer(response.status, tuple(response.headers), response.body)
