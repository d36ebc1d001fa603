"""The line between a supervisor and its child: a socket pair.

Its end tells the child that the supervisor is gone, however it died. What goes over it are two JSON
lines: the supervisor's order down, the child's `ready` up.

A maintainer must not break: the child ends by itself when the line ends, even if its event loop hangs.
"""

import os
import signal
import socket
import threading
import time
from typing import Any, Final

import msgspec

from cynosure.common.errors import Misconfigured

FD_VARIABLE: Final = "CYNOSURE_SUPERVISOR_FD"


class SupervisorLink:
    """The child's end of the line."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    @classmethod
    def find(cls) -> "SupervisorLink":
        """The line this process was started with."""
        fd = os.environ.pop(FD_VARIABLE, "")
        if not fd.isdigit():
            raise Misconfigured(
                "This process has no supervisor",
                fix="Start it with `cynosure up` or `cynosure serve`, not by hand.",
            )
        line = socket.socket(fileno=int(fd))
        line.set_inheritable(False)
        return cls(line)

    def read_order(self, order_type: Any) -> Any:
        """Wait for the supervisor's order. Ends the process when there is no supervisor any more."""
        received = b""
        while not received.endswith(b"\n"):
            chunk = self._line.recv(65536)
            if not chunk:
                raise SystemExit(1)
            received += chunk
        return msgspec.json.decode(received, type=order_type)

    def announce_ready(self, value: Any) -> None:
        """Tell the supervisor that this process does its work now."""
        try:
            self._line.sendall(msgspec.json.encode(value) + b"\n")
        except OSError:
            return  # The supervisor is gone; `end_with_supervisor` deals with that.

    def end_with_supervisor(self, grace_s: float) -> None:
        """From now on: when the supervisor is gone, stop as if by SIGTERM, and for certain after `grace_s`.

        A thread of its own, because an event loop that hangs would not notice.
        """

        def watch() -> None:
            try:
                while self._line.recv(64):
                    pass
            except OSError:
                pass
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(grace_s)
            os._exit(1)

        threading.Thread(target=watch, name="supervisor-link", daemon=True).start()
