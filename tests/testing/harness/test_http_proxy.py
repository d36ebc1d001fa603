"""The fault proxy as clients without an event loop use it."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
import pytest

from cynosure.testing.harness.faults import CutAnswer, Delay, LoseAnswer, ReplaceAnswer, Respond, http_request
from cynosure.testing.harness.http_proxy import HttpProxy, find_header, is_mutation, run_http_proxy


class Upstream(ThreadingHTTPServer):
    """Counts what it did, and answers with the count."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.acted: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Connections are cut all the time here."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Upstream

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.acted.append(self.path)
        body = f"done {len(self.server.acted)}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[HttpProxy]:
    with run_http_proxy(upstream.url) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: HttpProxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=20) as client:
        yield client


def test_a_client_that_blocks_is_served_in_the_thread_of_the_test(client: httpx.Client):
    assert [client.post("/commit", content=b"change").text for _ in range(3)] == [
        "done 1",
        "done 2",
        "done 3",
    ]


@pytest.mark.parametrize("loss", [LoseAnswer(), LoseAnswer(is_polite=True), CutAnswer(after_bytes=10)])
def test_the_server_acted_when_its_answer_is_lost(
    proxy: HttpProxy, client: httpx.Client, upstream: Upstream, loss: LoseAnswer | CutAnswer
):
    rule = proxy.add(loss, when=http_request("POST", "/commit"))

    with pytest.raises(httpx.TransportError):
        client.post("/commit", content=b"change")

    assert upstream.acted == ["/commit"]
    assert rule.hits == 1
    assert client.post("/next", content=b"").text == "done 2"


@pytest.mark.parametrize("loss", [LoseAnswer(hangs=True), Delay(answer_s=60)])
def test_the_server_acted_when_the_client_gives_up(
    proxy: HttpProxy, client: httpx.Client, upstream: Upstream, loss: LoseAnswer | Delay
):
    proxy.add(loss)

    with pytest.raises(httpx.ReadTimeout):
        client.post("/commit", content=b"change", timeout=0.2)

    assert upstream.acted == ["/commit"]
    assert client.post("/next", content=b"").text == "done 2"


def test_the_server_acted_when_its_answer_is_replaced(
    proxy: HttpProxy, client: httpx.Client, upstream: Upstream
):
    proxy.add(ReplaceAnswer(504, b"who knows"))

    got = client.post("/commit", content=b"change")

    assert (got.status_code, got.text) == (504, "who knows")
    assert upstream.acted == ["/commit"]


def test_the_server_did_nothing_when_the_proxy_answers(
    proxy: HttpProxy, client: httpx.Client, upstream: Upstream
):
    proxy.add(Respond(409, b"busy"))

    assert client.post("/commit", content=b"change").status_code == 409
    assert upstream.acted == []


def test_the_same_seed_loses_the_same_answers(upstream: Upstream):
    def run(seed: int) -> list[bool]:
        with run_http_proxy(upstream.url, seed=seed) as proxy:
            proxy.add(ReplaceAnswer(504), times=None, chance=0.5)
            with httpx.Client(base_url=proxy.url, trust_env=False) as client:
                return [client.post("/commit", content=b"").is_success for _ in range(24)]

    first = run(7)

    assert run(7) == first
    assert run(8) != first
    assert set(first) == {True, False}


def test_requests_are_recorded_with_their_headers(proxy: HttpProxy, client: httpx.Client):
    seen = proxy.record(http_request("POST", "/commit"))

    client.post("/commit", content=b"change", headers={"Idempotency-Key": "k-1"})
    client.post("/other", content=b"")

    [request] = seen
    assert request.data.endswith(b"\r\n\r\nchange")
    assert find_header(request, "idempotency-key") == "k-1"
    assert find_header(request, "if-match") is None


def test_cleared_rules_let_everything_pass(proxy: HttpProxy, client: httpx.Client):
    proxy.add(Respond(503), times=None)
    assert client.post("/commit", content=b"").status_code == 503

    proxy.clear()

    assert client.post("/commit", content=b"").is_success


def test_a_login_is_no_mutation(proxy: HttpProxy, client: httpx.Client):
    seen = proxy.record(is_mutation)

    client.post("/api/catalog/v1/oauth/tokens", content=b"")
    client.post("/api/catalog/v1/oauth/tokens?again=yes", content=b"")
    client.post("/api/catalog/v1/lake/namespaces", content=b"")

    assert [request.path for request in seen] == ["/api/catalog/v1/lake/namespaces"]


def test_nothing_is_left_of_a_proxy(upstream: Upstream):
    before = set(threading.enumerate())
    with run_http_proxy(upstream.url) as proxy:
        port = urlsplit(proxy.url).port
        proxy.add(LoseAnswer(hangs=True))
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{proxy.url}/commit", content=b"", timeout=0.2, trust_env=False)

    assert not {thread for thread in set(threading.enumerate()) - before if "portal" in thread.name}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
