"""A service that acts for a user has the user's rights and none besides, and only if it is trusted."""

import httpx
import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.login import Login

from .user import LAKE, TOKENS, MakeUser, assert_forbidden

pytestmark = pytest.mark.anyio


async def act_for(http: httpx.AsyncClient, user: Login, service: Login, scope: str = "") -> httpx.Response:
    token_type = "urn:ietf:params:oauth:token-type:access_token"
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": user.token(),
        "subject_token_type": token_type,
        "actor_token": service.token(),
        "actor_token_type": token_type,
        **({"scope": scope} if scope else {}),
    }
    return await http.post(TOKENS, data=form)


async def test_a_service_that_nobody_trusts_acts_for_no_one(
    server: CatalogServer, make_user: MakeUser
) -> None:
    user, service = await make_user("TABLE_READ_DATA"), await make_user("CATALOG_MANAGE_CONTENT")

    async with server.stranger() as http:
        refused = await act_for(http, user.login, service.login)

    assert refused.status_code in (400, 401, 403), refused.text
    assert "access_token" not in refused.json()


async def test_acting_for_a_user_gives_what_the_user_may_and_nothing_of_the_service(
    server: CatalogServer, make_user: MakeUser, admin: Admin
) -> None:
    user, service = await make_user("TABLE_READ_PROPERTIES"), await make_user("CATALOG_MANAGE_CONTENT")
    await admin.send("PUT", f"/cynosure/principals/{service.name}/trusted-service", {"trusted": True})

    async with server.stranger() as http:
        given = await act_for(http, user.login, service.login)
        assert given.status_code == 200, given.text
        http.headers["Authorization"] = f"Bearer {given.json()['access_token']}"
        read = await http.get(f"{LAKE}/namespaces/ns/tables/t")
        dropped = await http.delete(f"{LAKE}/namespaces/ns/tables/t")
        widened = await act_for(http, user.login, service.login, f"PRINCIPAL_ROLE:{service.role}")

        assert read.status_code == 200
        assert_forbidden(dropped, "TABLE_DROP")
        assert widened.status_code in (400, 401)

        # Both must still be what they were when it is used.
        await admin.send("PUT", f"/cynosure/principals/{service.name}/trusted-service", {"trusted": False})
        assert (await http.get(f"{LAKE}/namespaces/ns/tables/t")).status_code == 401
        await admin.send("PUT", f"/cynosure/principals/{service.name}/trusted-service", {"trusted": True})
        assert (await http.get(f"{LAKE}/namespaces/ns/tables/t")).status_code == 200
        await admin.delete_principal(user.name)
        assert (await http.get(f"{LAKE}/namespaces/ns/tables/t")).status_code == 401
