"""Who may give orders (I98): tokens, and certificates in real handshakes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from cynosure.client.tls import ClientTls, make_context
from cynosure.common.clock import SystemClock
from cynosure.common.errors import NotAuthenticated, Unavailable
from cynosure.server import certs
from cynosure.server.http_server import HttpServer, http_config
from cynosure.server.listen import listen_tcp
from cynosure.server.settings import TlsSettings
from cynosure.server.tls import ServerTls
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.service_tokens import REALM, TokenMaker
from tests.delegation.http.conftest import BASE, SYNC, World, payload

pytestmark = pytest.mark.anyio

# --- tokens ---------------------------------------------------------------------------------------


async def test_the_token_that_a_catalog_makes_is_good(world: World) -> None:
    token = await world.catalog.tokens.load(REALM)

    async with world.client(token=token.reveal()) as http:
        assert (await http.get(f"{BASE}/tasks")).status_code == 200
    assert await world.catalog.tokens.load(REALM) is token


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer not.a.token", "Bearer x"]
)
async def test_without_a_token_nothing_is_told_and_nothing_is_read(world: World, header) -> None:
    async with world.client() as http:
        del http.headers["Authorization"]
        headers = {} if header is None else {"Authorization": header}
        answers = [
            await http.post(SYNC, json=payload(), headers=headers),
            await http.post(f"{BASE}/tasks", content=b"{", headers=headers),
            await http.get(f"{BASE}/tasks", headers=headers),
            await http.post(f"{BASE}/tasks/x/cancel", headers=headers),
        ]

    assert {(each.status_code, each.json()["error_code"]) for each in answers} == {(401, "UNAUTHORIZED")}
    assert all(each.headers["www-authenticate"] == "Bearer" for each in answers)


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        ({"scope": "catalog"}, 403, "INSUFFICIENT_SCOPE"),
        ({"scope": ""}, 403, "INSUFFICIENT_SCOPE"),
        ({"scope": "execute_tasks_not"}, 403, "INSUFFICIENT_SCOPE"),
        ({"realm": "elsewhere"}, 401, "UNAUTHORIZED"),
        ({"aud": "cynosure/default"}, 401, "UNAUTHORIZED"),
        ({"aud": ["delegation"]}, 401, "UNAUTHORIZED"),
        ({"iss": "somebody"}, 401, "UNAUTHORIZED"),
        ({"exp": None}, 401, "UNAUTHORIZED"),
        ({"exp": 1}, 401, "UNAUTHORIZED"),
        ({"iat": 4_000_000_000}, 401, "UNAUTHORIZED"),
        ({"typ": "JWT"}, 401, "UNAUTHORIZED"),
    ],
)
async def test_a_token_that_says_something_else_is_refused(world: World, wrong, status, code) -> None:
    async with world.client(token=world.catalog.sign(**wrong)) as http:
        answer = await http.post(f"{BASE}/tasks", json=payload())

    assert (answer.status_code, answer.json()["error_code"]) == (status, code)


async def test_a_token_of_another_key_is_refused_however_it_is_called(world: World) -> None:
    stranger = TokenMaker(world.clock)
    stranger.signer = stranger.signer._replace(kid=world.catalog.signer.kid)

    for forger in (stranger, TokenMaker(world.clock)):
        async with world.client(token=forger.sign()) as http:
            assert (await http.get(f"{BASE}/tasks")).status_code == 401


async def test_a_token_that_was_good_is_refused_after_its_end() -> None:
    clock = ManualClock()
    catalog = TokenMaker(clock)
    verifier = catalog.make_verifier()
    token = (await catalog.load()).reveal()
    assert (await verifier.verify(token)).realm == REALM

    await clock.advance(309)
    assert await verifier.verify(token)
    await clock.advance(2)
    with pytest.raises(NotAuthenticated, match="expired"):
        await verifier.verify(token)


async def test_a_token_is_made_anew_before_it_ends_and_when_it_was_refused() -> None:
    clock = ManualClock()
    catalog = TokenMaker(clock)
    first = await catalog.load()
    await clock.advance(200)
    assert await catalog.load() is first
    await clock.advance(60)
    second = await catalog.load()
    assert second is not first
    catalog.drop()
    assert await catalog.load() is not second


async def test_while_the_catalog_cannot_be_asked_for_its_keys_nobody_is_let_in(world: World) -> None:
    world.catalog.is_reachable = False
    async with world.client(world.app()) as http:
        refused = await http.post(f"{BASE}/tasks", json=payload())
        assert (refused.status_code, refused.json()["error_code"]) == (503, "UNAVAILABLE")
        with pytest.raises(Unavailable):
            await world.catalog.make_verifier().verify(world.catalog.sign())

        world.catalog.is_reachable = True
        assert (await http.post(f"{BASE}/tasks", json=payload())).status_code == 202


async def test_stale_tokens_make_nobody_fetch_keys(world: World) -> None:
    async with world.client(world.app(), token=world.catalog.sign(exp=1)) as http:
        for _ in range(3):
            await http.get(f"{BASE}/tasks")

    assert world.catalog.fetched == 0


# --- certificates ---------------------------------------------------------------------------------


class PastClock(SystemClock):
    def now_us(self) -> int:
        return super().now_us() - timedelta(days=30) // timedelta(microseconds=1)


def make_certs(directory: Path, **more) -> Path:
    given = {"hosts": ["127.0.0.1"], "client": "somebody", "days": 1, "clock": SystemClock()} | more
    certs.init_certs(directory, **given)
    return directory


def shown(directory: Path, name: str, trusted: Path | None = None) -> ssl.SSLContext:
    ca = (trusted or directory) / "ca.pem"
    return make_context(ClientTls(ca, directory / f"{name}.pem", directory / f"{name}.key"))


@pytest.fixture
async def served(world: World, tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """The service over mutual TLS: its address, and the directory of the right authority."""
    ours = make_certs(tmp_path / "ours")
    tls = ServerTls(TlsSettings(ours / "server.pem", ours / "server.key", ours / "ca.pem"))
    service = world.service._replace(app=world.app(client_names=("cynosure-catalog",)))
    async with serving(service, tls) as url:
        yield url, ours


@asynccontextmanager
async def serving(service, tls: ServerTls) -> AsyncIterator[str]:
    server = HttpServer(http_config(service, 1.0, tls))
    with listen_tcp("127.0.0.1", 0) as listener:
        running = asyncio.create_task(server.run_until_stopped(listener))
        await server.listening.wait()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await running


async def ask(world: World, url: str, context: ssl.SSLContext, **options) -> httpx.Response:
    headers = {"Authorization": f"Bearer {world.catalog.sign()}"}
    async with httpx.AsyncClient(verify=context, trust_env=False, headers=headers, timeout=20) as http:
        return await http.get(f"{url}{BASE}/tasks", **options)


async def test_the_catalog_comes_in_with_its_certificate_and_its_token(world: World, served) -> None:
    url, ours = served

    assert (await ask(world, url, shown(ours, "catalog"))).status_code == 200
    no_token = await ask(world, url, shown(ours, "catalog"), headers={"Authorization": ""})
    assert no_token.status_code == 401


@pytest.mark.parametrize("name", ["client", "delegation"])
async def test_another_client_of_the_right_authority_is_refused(world: World, served, name: str) -> None:
    url, ours = served

    answer = await ask(world, url, shown(ours, name))

    assert (answer.status_code, answer.json()["error_code"]) == (403, "WRONG_CLIENT")


async def test_a_name_that_only_contains_the_right_one_is_refused(world: World, served, tmp_path) -> None:
    url, _ = served
    # The right name comes first in the text of the subject, as a part of the real name.
    odd = make_certs(tmp_path / "odd", client="cynosure-catalog,CN=x")
    tls = ServerTls(TlsSettings(odd / "server.pem", odd / "server.key", odd / "ca.pem"))
    service = world.service._replace(app=world.app(client_names=("cynosure-catalog",)))
    async with serving(service, tls) as other:
        assert (await ask(world, other, shown(odd, "client"))).status_code == 403
    assert url != other


async def test_no_certificate_is_refused_in_the_handshake(world: World, served) -> None:
    url, ours = served

    with pytest.raises(httpx.TransportError):
        await ask(world, url, make_context(ClientTls(ours / "ca.pem")))


async def test_a_certificate_of_another_authority_is_refused_in_the_handshake(
    world: World, served, tmp_path: Path
) -> None:
    url, ours = served
    theirs = make_certs(tmp_path / "theirs")

    with pytest.raises(httpx.TransportError):
        await ask(world, url, shown(theirs, "catalog", trusted=ours))
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await ask(world, url, shown(ours, "catalog", trusted=theirs))


async def test_a_certificate_that_has_ended_is_refused_in_the_handshake(world: World, tmp_path) -> None:
    # One authority, whose certificates were good for a day a month ago; the server's own is newer.
    old = make_certs(tmp_path / "old", clock=PastClock())
    new = make_certs(tmp_path / "new")
    tls = ServerTls(TlsSettings(new / "server.pem", new / "server.key", old / "ca.pem"))
    service = world.service._replace(app=world.app(client_names=("cynosure-catalog",)))
    async with serving(service, tls) as url:
        with pytest.raises(httpx.TransportError):
            await ask(world, url, shown(old, "catalog", trusted=new))
