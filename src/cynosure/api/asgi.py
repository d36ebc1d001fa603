"""The ASGI types this room speaks, and the scope keys that middleware and router share.

A maintainer must not break: everything here is plain ASGI, so the server underneath stays swappable.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST_ID: Final = "cynosure.request_id"
"""`str`; set by the telemetry middleware."""
DEADLINE_S: Final = "cynosure.deadline_s"
"""`float`, monotonic seconds; set by the limits middleware. A value that travels with the request:
nothing is cancelled when it passes, because a cancelled write has an unknown outcome."""
OPERATION: Final = "cynosure.operation"
"""`str`, the operation id of the matched route; set by the router, read by telemetry."""
STARTED: Final = "cynosure.started"
"""Present once the response has begun, so an error can no longer be answered with an envelope."""
