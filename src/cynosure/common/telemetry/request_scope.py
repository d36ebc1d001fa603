"""Who asked: the request id, realm and principal that every log line of a request carries.

Context variables follow `await` and new tasks by themselves; a thread started by hand does not inherit them.
"""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

import msgspec
from msgspec import Struct

_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")


class RequestScope(Struct, frozen=True):
    """What is known about the current request. Empty text: not known (yet)."""

    request_id: str = ""
    realm: str = ""
    principal: str = ""


_current: ContextVar[RequestScope] = ContextVar("cynosure_request_scope")
_NOBODY = RequestScope()


def current_scope() -> RequestScope:
    """The scope of the code that runs now; empty outside any request."""
    return _current.get(_NOBODY)


@contextmanager
def request_scope(
    *, request_id: str | None = None, realm: str | None = None, principal: str | None = None
) -> Iterator[RequestScope]:
    """Run a block in a scope. What is not given is taken from the scope around it."""
    given = {"request_id": request_id, "realm": realm, "principal": principal}
    known = {name: value for name, value in given.items() if value is not None}
    scope = msgspec.structs.replace(current_scope(), **known)
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)


def enter_scope(scope: RequestScope) -> Token[RequestScope]:
    """Begin a scope of which everything is known; cheaper than `request_scope`. End it with `leave_scope`."""
    return _current.set(scope)


def leave_scope(token: Token[RequestScope]) -> None:
    """Go back to the scope around the one that `enter_scope` began."""
    _current.reset(token)


def choose_request_id(incoming: str | None, rng: random.Random) -> str:
    """The caller's request id when it is sane, else a new one.

    Sane: 1 to 128 characters that cannot break a log line, a header or a file name pattern. Anything else is
    replaced, not cleaned: a half-kept id matches nothing on either side.
    """
    if incoming is not None and _SANE_ID.fullmatch(incoming):
        return incoming
    return f"{rng.getrandbits(128):032x}"
