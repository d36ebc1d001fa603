"""Refuses requests that were meant for another machine, on a service that asks nobody who they are.

A service on the loopback address is still within reach of every web page that a user of the machine opens: a
page may point a name of its own at 127.0.0.1 and then speak to "itself". Such requests carry the page's name
in their Host header.

A maintainer must not break: what a browser can be made to send is refused, whatever the path.
"""

import ipaddress

from cynosure.api import asgi
from cynosure.api.asgi import App, Receive, Scope, Send
from cynosure.api.errors import Misdirected

_MAX_KNOWN = 64


class LocalHosts:
    """Lets requests pass whose Host is this machine's own, by address or as `localhost`."""

    def __init__(self, app: App, own_name: str = "") -> None:
        self._app = app
        self._own_name = own_name.lower()
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application for requests meant for this machine."""
        host = asgi.headers_of(scope).get(b"host", b"")
        if host not in self._known:
            self._check(host)
        await self._app(scope, receive, send)

    def _check(self, host: bytes) -> None:
        # Without a Host it is no browser.
        name = _name_of(host.decode("latin-1"))
        if host and name not in ("localhost", self._own_name) and not _is_loopback(name):
            raise Misdirected(
                "The request was meant for another machine",
                fix="Use localhost, 127.0.0.1 or [::1] in the address.",
                host=name[:100],
            )
        if len(self._known) < _MAX_KNOWN:
            self._known.add(host)


def _name_of(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
