"""`realms.*` through the operator socket of a running server; what changes is true for clients at once."""

import random
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.client.operator import find_operator
from cynosure.common.clock import SystemClock
from cynosure.common.progress import ignore_progress
from cynosure.server.realm_commands import CreateRealmParams, RealmParams
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.login import TOKENS

pytestmark = pytest.mark.anyio


async def log_in(http: httpx.AsyncClient, url: str, realm: str, made: dict[str, str]) -> httpx.Response:
    form = {
        "grant_type": "client_credentials",
        "client_id": made["client_id"],
        "client_secret": made["client_secret"],
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    return await http.post(url + TOKENS, data=form, headers={"Polaris-Realm": realm})


async def test_realms_are_made_and_taken_away_under_a_running_server(serve, http) -> None:
    """I34, I36."""
    served = await serve()

    async def realms(command: str, params: Any) -> dict[str, str]:
        socket = served.data / "operator.sock"
        async with find_operator(socket, SystemClock(), random.Random(1)) as operator:
            assert operator is not None
            answer = await operator.run(f"realms.{command}", params, ignore_progress)
        found = msgspec.json.decode(answer, type=dict[str, str])
        if "client_secret" in found:
            KNOWN.add(found["client_secret"])
        return found

    async def principals(token: str, realm: str = "acme") -> httpx.Response:
        headers = {"Polaris-Realm": realm, "Authorization": f"Bearer {token}"}
        return await http.get(f"{served.url}/api/management/v1/principals", headers=headers)

    made = await realms("create", CreateRealmParams("acme"))
    token = (await log_in(http, served.url, "acme", made)).json()["access_token"]
    assert [each["name"] for each in (await principals(token)).json()["principals"]] == ["root"]
    assert (await principals(token, "default")).status_code == 401, "a token opens its own realm only"

    reset = await realms("reset-root", RealmParams("acme"))
    assert (await principals(token)).status_code == 401
    assert (await log_in(http, served.url, "acme", made)).status_code == 401
    token = (await log_in(http, served.url, "acme", reset)).json()["access_token"]

    await realms("delete", RealmParams("acme"))
    assert (await principals(token)).status_code == 404
    assert (await log_in(http, served.url, "acme", reset)).status_code == 404

    again = await realms("create", CreateRealmParams("acme"))
    assert (await principals(token)).status_code == 401
    assert (await log_in(http, served.url, "acme", reset)).status_code == 401
    assert (await log_in(http, served.url, "acme", again)).status_code == 200
