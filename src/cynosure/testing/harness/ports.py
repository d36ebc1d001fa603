"""Ports that nobody else takes between choosing one and listening on it.

A maintainer must not break: the reserving socket is bound but never listens. Linux then keeps the port
from being handed out to others, while a server that sets SO_REUSEADDR (all do that restart quickly) may
still bind it and listen, again and again.
"""

import socket


class ReservedPort:
    """A free loopback port, kept free for the servers of one test until `release`."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Give the port back to the system."""
        self._socket.close()
