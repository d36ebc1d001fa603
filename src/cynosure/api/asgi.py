"""The ASGI types this room speaks, and the scope keys that middleware and router share.

A maintainer must not break: everything here is plain ASGI, so the server underneath stays swappable.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
SendWhole: TypeAlias = Callable[[Scope, int, Sequence[tuple[bytes, bytes]], bytes], bool]
"""Sends status, headers and body in one go; `False` when it did nothing, and `Send` has to do it."""

REQUEST_ID: Final = "cynosure.request_id"
"""`str`; set by the telemetry middleware."""
DEADLINE_S: Final = "cynosure.deadline_s"
"""`float`, monotonic seconds; set by the limits middleware. A value that travels with the request:
nothing is cancelled when it passes, because a cancelled write has an unknown outcome."""
OPERATION: Final = "cynosure.operation"
"""`str`, the operation id of the matched route; set by the router, read by telemetry."""
PARAMS: Final = "cynosure.params"
"""`Mapping[str, str]`, the decoded parameters of the path; set by the router before anyone is let in."""
CALLER: Final = "cynosure.caller"
"""`cynosure.auth.caller.Caller`, whom the gate let in; set by the router, missing on public routes."""
STATUS: Final = "cynosure.status"
"""`int`; set by `Response.send` when the response begins. From then on an error can no longer be answered
with an envelope."""
SEND_WHOLE: Final = "cynosure.send_whole"
"""`SendWhole`; set by a server that has it."""
_HEADERS: Final = "cynosure.headers"


def headers_of(scope: Scope) -> Mapping[bytes, bytes]:
    """The request's headers by lower-case name; of repeated ones the first. Made once per request."""
    headers: dict[bytes, bytes] | None = scope.get(_HEADERS)
    if headers is None:
        headers = scope[_HEADERS] = dict(reversed(scope["headers"]))
    return headers


def list_values(scope: Scope, name: bytes) -> Sequence[bytes]:
    """All values of a header, given in lower case: for those that must not be repeated."""
    headers = headers_of(scope)
    if name not in headers:
        return ()
    sent = scope["headers"]
    return (headers[name],) if len(headers) == len(sent) else [value for key, value in sent if key == name]
