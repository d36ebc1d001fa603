"""Routes, and the dispatch from method and raw path to a handler.

Dispatch walks one trie node per path segment and never goes back: the choices that a literal segment
and a parameter at the same place leave open (`/v1/config` beside `/v1/{prefix}/namespaces`, with a
catalog that is called `config`) are merged when the router is built.

A maintainer must not break: matching uses ASGI's `raw_path`, split before decoding, so `%2F` inside
a name stays inside its segment.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from cynosure.api import asgi
from cynosure.api.asgi import Receive, Scope, Send
from cynosure.api.decode import BodyDecoder, QueryDecoder, read_body
from cynosure.api.errors import MethodNotAllowed
from cynosure.api.gate import Gate
from cynosure.api.messages import Request, Response
from cynosure.api.percent import decode_segment
from cynosure.auth.caller import Caller
from cynosure.common.errors import BadInput, Forbidden, NotAuthenticated, NotFound

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_MUTATING = frozenset({"POST", "PUT", "DELETE"})
_KEY_HEADER = b"idempotency-key"

_MAX_RECENT = 4096
"""Paths whose match is remembered; a few tables are hot and each costs several decoded segments."""
_MAX_RECENT_PATH_BYTES = 512
_MAX_RECENT_QUERIES = 256
_MAX_RECENT_QUERY_BYTES = 128
"""Longer ones hold page tokens, which come once."""


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the API: where it is, what it reads and what it answers."""

    method: str
    path: str
    """Literal segments and `{parameters}`, each filling a whole segment."""
    handler: Handler
    operation_id: str = field(kw_only=True)
    """Names the operation in OpenAPI, logs and metrics. Unique in a router."""
    summary: str = field(kw_only=True, default="")
    tags: tuple[str, ...] = field(kw_only=True, default=())
    request: Any = field(kw_only=True, default=None)
    """Type of the JSON body, decoded into `Request.body`; `None` leaves the body unread."""
    is_body_optional: bool = field(kw_only=True, default=False)
    """Whether the request may come without its body; `Request.body` is then `None`."""
    form: type[Struct] | None = field(kw_only=True, default=None)
    """Struct of the form that is sent. It is only described: the handler reads the body."""
    query: type[Struct] | None = field(kw_only=True, default=None)
    """Struct of the query parameters, decoded into `Request.query`."""
    headers: Mapping[str, Any] = field(kw_only=True, default_factory=dict)
    """Headers that the handler reads, none of them required, each with its JSON schema. Only described."""
    responses: Mapping[int, Any] = field(kw_only=True, default_factory=dict)
    """Type of the JSON body by status; `None` for an answer without body. Errors need no entry."""
    errors: tuple[int, ...] = field(kw_only=True, default=())
    """Statuses of refusals that only this operation has; `openapi.py` knows those of all others."""
    is_public: bool = field(kw_only=True, default=False)
    """Answered without asking who wants to know."""
    changes_nothing: bool = field(kw_only=True, default=False)
    """Of a POST that only asks, or is not for clients: it takes no Idempotency-Key."""
    is_commit: bool = field(kw_only=True, default=False)
    """Commits what a client has written to storage. Such clients take 409 for a refusal of their changes, and
    delete the files of them."""

    @property
    def is_keyed(self) -> bool:
        """Whether an Idempotency-Key counts."""
        return self.method in _MUTATING and not self.is_public and not self.changes_nothing

    def list_params(self) -> list[str]:
        """Names of the path parameters, in their order."""
        return [part[1:-1] for part in self.path.split("/") if _is_param(part)]


class Once(Protocol):
    """Answers requests that carry an Idempotency-Key."""

    async def answer(self, route: Route, request: Request, caller: Caller, body: bytes) -> Response:
        """What the route's handler answers, or answered to an earlier attempt. `body` is what was sent."""
        ...


class _Endpoint:
    """A route with everything that can be computed before the first request."""

    __slots__ = (
        "_recent_queries",
        "body",
        "handler",
        "is_keyed",
        "is_public",
        "operation_id",
        "params",
        "query",
        "route",
    )

    def __init__(self, route: Route) -> None:
        self.route = route
        self.handler = route.handler
        self.operation_id = route.operation_id
        self.is_public = route.is_public
        self.is_keyed = route.is_keyed
        self.body = (
            None if route.request is None else BodyDecoder(route.request, is_optional=route.is_body_optional)
        )
        self.query = None if route.query is None else QueryDecoder(route.query)
        parts = route.path.split("/")
        self.params = tuple((at, part[1:-1]) for at, part in enumerate(parts) if _is_param(part))
        # Only what no handler can change may be given to several of them.
        is_frozen = route.query is not None and route.query.__struct_config__.frozen
        self._recent_queries: dict[bytes, Any] | None = {} if is_frozen else None

    def read_query(self, raw: bytes) -> Any:
        """The query string as the route's struct; clients send the same few again and again."""
        assert self.query is not None  # noqa: S101 - asked only of routes that declare one
        recent = self._recent_queries
        if recent is None or len(raw) > _MAX_RECENT_QUERY_BYTES:
            return self.query.decode(raw)
        found = recent.get(raw)
        if found is None:
            found = self.query.decode(raw)
            if len(recent) >= _MAX_RECENT_QUERIES:
                recent.clear()
            recent[raw] = found
        return found


_Match: TypeAlias = tuple[_Endpoint, Mapping[str, str]]


class _Node:
    __slots__ = ("endpoints", "literals", "param")

    def __init__(self) -> None:
        self.literals: dict[bytes, _Node] = {}
        self.param: _Node | None = None
        self.endpoints: dict[str, _Endpoint] = {}


class Router:
    """An ASGI application that answers the given routes. Errors pass to the middleware around it."""

    def __init__(self, routes: Iterable[Route], gate: Gate | None = None, once: Once | None = None) -> None:
        self.routes = tuple(routes)
        self._gate = gate
        self._once = once
        closed = [route.operation_id for route in self.routes if not route.is_public]
        if gate is None and closed:
            raise ValueError(f"Routes that are not public need a gate: {closed}")
        root = _Node()
        for route in self.routes:
            _insert(root, route)
        ids = [route.operation_id for route in self.routes]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"Operation ids must be unique: {sorted(repeated)}")
        self._root = _merged(root, None)
        self._recent: dict[tuple[str, bytes], _Match] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        endpoint, params = self._match(scope["method"], scope["raw_path"])
        scope[asgi.OPERATION] = endpoint.operation_id
        scope[asgi.PARAMS] = params
        caller: Caller | None = None
        try:
            if not endpoint.is_public:
                assert self._gate is not None  # noqa: S101 - checked when the router was made
                caller = scope[asgi.CALLER] = await self._gate.admit(scope)
            request = Request(scope, receive, params)
            if endpoint.query is not None:
                request.query = endpoint.read_query(scope["query_string"])
            if endpoint.is_keyed and self._once is not None and _KEY_HEADER in asgi.headers_of(scope):
                assert caller is not None  # noqa: S101 - public routes have no keys
                body = await read_body(receive)
                if endpoint.body is not None:
                    request.body = endpoint.body.parse(scope, body)
                response = await self._once.answer(endpoint.route, request, caller, body)
            else:
                if endpoint.body is not None:
                    request.body = await endpoint.body.read(scope, receive)
                response = await endpoint.handler(request)
        except (NotAuthenticated, Forbidden, NotFound) as error:
            # What is hidden from a caller is answered as missing; why is in the cause.
            refusal = error.__cause__ if isinstance(error, NotFound) else error
            if self._gate is not None and isinstance(refusal, NotAuthenticated | Forbidden):
                await self._gate.refused(scope, caller, refusal)
            raise
        await response.send(scope, send)

    def _match(self, method: str, raw_path: bytes) -> _Match:
        key = (method, raw_path)
        found = self._recent.get(key)
        if found is None:
            found = self._find(method, raw_path)
            if len(raw_path) <= _MAX_RECENT_PATH_BYTES:
                if len(self._recent) >= _MAX_RECENT:
                    self._recent.clear()
                self._recent[key] = found
        return found

    def _find(self, method: str, raw_path: bytes) -> _Match:
        segments = raw_path.split(b"/")
        node: _Node | None = self._root
        for segment in segments:
            node = _step(node, segment)
            if node is None:
                break
        if node is None or not node.endpoints:
            raise NotFound("No operation has this path", fix="See /openapi.json for the paths served here.")
        endpoint = node.endpoints.get(method)
        if endpoint is None:
            raise MethodNotAllowed(
                "The path exists, but not with this method",
                allow=tuple(sorted(node.endpoints)),
                fix="Use one of the allowed methods.",
            )
        params = {name: decode_segment(segments[at]) for at, name in endpoint.params}
        return endpoint, MappingProxyType(params)


def _is_param(part: str) -> bool:
    return part.startswith("{") and part.endswith("}")


def _step(node: "_Node | None", segment: bytes) -> "_Node | None":
    if node is None:
        return None
    if (literal := node.literals.get(segment)) is not None:
        return literal
    if b"%" in segment and node.literals:
        # RFC 3986: %63onfig is config.
        try:
            spelled_out = decode_segment(segment).encode()
        except BadInput:
            if node.param is None:
                return None
            raise
        if (literal := node.literals.get(spelled_out)) is not None:
            return literal
    return node.param if segment else None


def _insert(root: _Node, route: Route) -> None:
    if not route.path.startswith("/"):
        raise ValueError(f"A path starts with a slash: {route.path}")
    node = root
    for part in route.path.split("/"):
        if _is_param(part):
            node.param = node.param or _Node()
            node = node.param
        elif "{" in part or "}" in part:
            raise ValueError(f"A parameter fills a whole segment: {route.path}")
        else:
            node = node.literals.setdefault(part.encode(), _Node())
    if route.method in node.endpoints:
        raise ValueError(f"Two routes answer {route.method} {route.path}")
    node.endpoints[route.method] = _Endpoint(route)


def _merged(node: _Node | None, fallback: _Node | None) -> _Node:
    """`node` with everything of `fallback` below it that it does not define itself."""
    result = _Node()
    layers = [layer for layer in (fallback, node) if layer is not None]
    for layer in layers:
        if "GET" in layer.endpoints:
            # Per layer, before merging: HEAD of a literal path comes from its own GET, not the parameter's.
            result.endpoints["HEAD"] = layer.endpoints["GET"]
        result.endpoints.update(layer.endpoints)
    params = [layer.param for layer in layers if layer.param is not None]
    if params:
        result.param = _merged(params[-1], params[0] if len(params) > 1 else None)
    for name in dict.fromkeys(name for layer in layers for name in layer.literals):
        found = [layer.literals[name] for layer in layers if name in layer.literals]
        own = found[-1]
        below = found[0] if len(found) > 1 else None
        result.literals[name] = _merged(own, _merged(below, result.param) if below else result.param)
    return result
