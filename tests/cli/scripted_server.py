"""A server that answers what a test has written, request by request."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = tuple[int, Any]


class Script:
    """What the server answers, request by request; the last answer stays."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        self.bodies: list[bytes] = []

    def next(self, request: str, body: bytes) -> Answer:
        self.asked.append(request)
        self.bodies.append(body)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def refusal(status: int, message: str) -> Answer:
    return status, {"error": {"message": message, "type": "X", "code": status}}


@contextmanager
def serve(script: Script) -> Iterator[str]:
    """The address of the server. It lets everybody in."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            given = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path.endswith("/oauth/tokens"):
                status, body = 200, {"access_token": "t", "token_type": "bearer", "expires_in": 3600}
            elif "/cynosure/config" in self.path or "/v1/config" in self.path:
                # Nothing is promised: what is sent is sent once.
                status, body = refusal(404, "no")
            else:
                status, body = script.next(f"{self.command} {self.path.removeprefix('/api')}", given)
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: Any) -> None:
            """Nothing: the test looks at what was asked."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
