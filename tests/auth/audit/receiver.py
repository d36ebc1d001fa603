"""A webhook receiver: a real HTTP server that remembers what it was sent."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    """What was answered."""

    @property
    def events(self) -> list[dict[str, Any]]:
        decoded = json.loads(self.body)
        return decoded if isinstance(decoded, list) else [decoded]


@dataclass
class Receiver:
    """What was sent, and what is answered to it."""

    url: str = ""
    requests: list[Received] = field(default_factory=list)
    status_for: Callable[[Received], int] = lambda _: 204

    def taken(self) -> list[dict[str, Any]]:
        """The events of all requests that were answered with success."""
        return [event for each in self.requests if each.status < 300 for event in each.events]

    def names(self) -> list[str]:
        return [event.get("subject", "") for event in self.taken()]


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.path, headers, body)
            status = request.status = receiver.status_for(request)
            receiver.requests.append(request)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?token=hidden-token"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
