"""Tokens of a real OpenID provider, over real HTTP: discovery, keys, claims as it writes them."""

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from cynosure.auth.settings import AuthSettings, OidcSettings
from cynosure.common.clock import SystemClock
from cynosure.common.errors import NotAuthenticated
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.harness.ports import ReservedPort
from tests.auth.tokens.world import open_world
from tests.engines.tool_environment import install_tool

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent / "canaille"


class Canaille(NamedTuple):
    url: str
    secret: str
    password: str

    async def login(self) -> str:
        """A token of the user, as an application would get it."""
        form = {
            "grant_type": "password",
            "client_id": "lake",
            "client_secret": self.secret,
            "username": "ann",
            "password": self.password,
            "scope": "openid profile email groups",
        }
        async with httpx.AsyncClient(timeout=60) as http:
            answer = await http.post(f"{self.url}/oauth/token", data=form)
        return answer.json()["access_token"]


@pytest.fixture(scope="module")
def canaille(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaille]:
    port, secret, password = ReservedPort(), secrets.token_hex(16), secrets.token_hex(16)
    folder = tmp_path_factory.mktemp("canaille")
    # Not from our environment: it brings a package called `tests`.
    python = install_tool("canaille", HERE / "requirements.txt")
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [str(python), str(HERE / "serve.py"), str(port.number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
        ) as process,
    ):
        try:
            print(secret, password, sep="\n", file=process.stdin, flush=True)
            ready = process.stdout.readline()
            assert ready == "ready\n", (folder / "log").read_text()
            yield Canaille(f"http://127.0.0.1:{port.number}", secret, password)
        finally:
            process.kill()
            port.release()


def settings_for(canaille: Canaille, **changed: object) -> AuthSettings:
    known = {"issuer": canaille.url, "audience": ("lake",), "role_prefix": "lake-", **changed}
    return AuthSettings(oidc={"corp": OidcSettings(**known)})


async def test_a_user_of_the_provider_comes_in_with_the_roles_of_its_groups(canaille):
    settings = settings_for(canaille, first_use="provision", name_claim="email")
    async with open_world(SystemClock(), settings) as world:
        await world.add_role("analyst", is_federated=True)

        caller = await world.tokens.authenticator.authenticate(await canaille.login(), DEFAULT_REALM)

        assert (caller.principal, caller.roles) == ("ann@corp.example", ("analyst",))


async def test_a_principal_that_exists_is_bound_to_the_user(canaille):
    async with open_world(SystemClock(), settings_for(canaille)) as world:
        await world.add_principal("ann")

        caller = await world.tokens.authenticator.authenticate(await canaille.login(), DEFAULT_REALM)

        assert caller.principal == "ann"


@pytest.mark.parametrize(
    "changed", [{"audience": ("elsewhere",)}, {"algorithms": ("ES256",)}, {"realms": ("other",)}]
)
async def test_the_providers_tokens_for_others_are_refused(canaille, changed):
    async with open_world(SystemClock(), settings_for(canaille, **changed)) as world:
        await world.add_principal("ann")

        with pytest.raises(NotAuthenticated):
            await world.tokens.authenticator.authenticate(await canaille.login(), DEFAULT_REALM)


async def test_the_provider_under_another_name_is_not_the_one_that_is_trusted(canaille):
    settings = settings_for(canaille, issuer=canaille.url.replace("127.0.0.1", "localhost"))
    async with open_world(SystemClock(), settings) as world:
        await world.add_principal("ann")

        with pytest.raises(NotAuthenticated):
            await world.tokens.authenticator.authenticate(await canaille.login(), DEFAULT_REALM)
