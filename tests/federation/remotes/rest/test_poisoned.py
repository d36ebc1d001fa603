"""Nothing but the connection says who we are or which way requests go (I116)."""

import os
from pathlib import Path

import pytest

from cynosure.catalog.connection import (
    Authentication,
    Bearer,
    Connection,
    ConnectionSecrets,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.common.clock import SystemClock
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.remotes.rest import open_rest
from cynosure.federation.settings import FederationSettings
from cynosure.testing import lying_remote as lies
from tests.storage.traps import poisoned, trap

from .liars import OAUTH, ORDERS, Liar, table_answer

__all__ = ["poisoned", "trap"]

pytestmark = pytest.mark.anyio


@pytest.fixture
def poisoned_ways(
    poisoned: list[bytes],
    trap: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> list[bytes]:
    """Proxies and passwords of the environment as well, all of which lead into the trap."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, trap[0])
        monkeypatch.setenv(name.lower(), trap[0])
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    netrc = tmp_path / ".netrc"
    netrc.write_text("default login poison password poison\n")
    os.chmod(netrc, 0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("URI", "TOKEN", "CREDENTIAL"):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__DEFAULT__{name}", trap[0])
    return poisoned


@pytest.mark.parametrize(
    "authentication",
    [OAUTH, Bearer(), SigV4(signing_region="eu-west-1"), Implicit()],
    ids=["oauth", "bearer", "sigv4", "nothing"],
)
async def test_the_environment_has_no_say(
    poisoned_ways: list[bytes], liar: Liar, authentication: Authentication
):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    settings = FederationSettings(allow_implicit=True)

    await liar.open(authentication, settings=settings).load_table(ORDERS)

    assert poisoned_ways == []
    sent = str(liar.server.heard).lower()
    assert "poison" not in sent
    assert "basic " not in sent
    if isinstance(authentication, Implicit):
        assert not any("authorization" in heard.headers for heard in liar.server.heard)


@pytest.mark.parametrize(
    "authentication",
    [
        OAuth(client_id="near"),
        Bearer(),
        SigV4(signing_region="r"),
        SigV4(signing_region="r", role_arn="arn:aws:iam::1:role/x"),
        Password(user="u"),
        Implicit(),
    ],
    ids=["oauth", "bearer", "sigv4", "role", "password", "nothing"],
)
async def test_without_secrets_nothing_is_sent(
    poisoned_ways: list[bytes], liar: Liar, authentication: Authentication
):
    connection = Connection(type="ICEBERG_REST", uri=liar.server.url, authentication=authentication)

    with pytest.raises(RemoteUnavailable):
        open_rest(connection, ConnectionSecrets(), FederationSettings(), SystemClock(), "near")

    assert liar.server.heard == []
    assert poisoned_ways == []
