"""An OpenTelemetry collector that keeps what it is sent."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """Receives OTLP over HTTP, as a collector does."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Receive)
        self.received = []
        self.paths = []
        self.keys = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self):
        return [
            span
            for request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class Receive(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append(ExportTraceServiceRequest.FromString(body))
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers.get("x-api-key"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def run_collector() -> Iterator[Collector]:
    """While it is open, spans can be sent to it."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
