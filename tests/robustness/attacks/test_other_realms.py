"""Realms are apart: tokens, names and catalogs of one mean nothing in another, whatever headers say."""

import json
import secrets

import pytest

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.login import Credential, Login

from .user import LAKE

pytestmark = pytest.mark.anyio


async def create_realm(server: CatalogServer, name: str) -> Login:
    """Another realm on the same server; its root."""
    made = json.loads(await server.run_cli("realms", "create", name, "--json"))
    client_id, secret = made["client_id"], made["client_secret"]
    return server.login_as(Credential(client_id, KNOWN.add(secret, client_id=client_id)), realm=name)


async def test_a_token_is_good_in_its_own_realm_only_whatever_the_header_says(server: CatalogServer) -> None:
    realm = f"realm{secrets.token_hex(4)}"
    other = await create_realm(server, realm)
    ours, theirs = server.token(), other.token()
    async with server.stranger() as http:

        async def ask(token: str, *headers: tuple[str, str]) -> int:
            sent = [("Authorization", f"Bearer {token}"), *headers]
            return (await http.get(f"{MANAGEMENT}/principals", headers=sent)).status_code

        assert await ask(ours) == 200
        assert await ask(ours, ("Polaris-Realm", "default")) == 200
        assert await ask(theirs, ("Polaris-Realm", realm)) == 200
        # Of another realm.
        assert await ask(ours, ("Polaris-Realm", realm)) == 401
        assert await ask(theirs) == 401
        assert await ask(theirs, ("Polaris-Realm", "default")) == 401
        # Smuggled.
        for headers in (
            [("Polaris-Realm", "default"), ("Polaris-Realm", realm)],
            [("Polaris-Realm", realm), ("polaris-realm", "default")],
            [("Polaris-Realm", f"default, {realm}")],
            [("Polaris-Realm", f"{realm},default")],
            [("Polaris-Realm", "")],
            [("Polaris-Realm", realm.upper())],
            [("Polaris-Realm", f"{realm}/../default")],
            [("Polaris-Realm", "::system::")],
            [("Polaris-Realm", "_realm")],
        ):
            for token in (ours, theirs):
                status = await ask(token, *headers)
                assert status in (400, 401, 404), f"{headers}: {status}"
        # An underscore is not a hyphen, and a query is not a header: the realm stays the default one.
        assert await ask(theirs, ("Polaris_Realm", realm)) == 401
        shown = await http.get(
            f"{MANAGEMENT}/principals?Polaris-Realm={realm}", headers={"Authorization": f"Bearer {theirs}"}
        )
        assert shown.status_code == 401


async def test_the_same_name_in_two_realms_is_two_principals(server: CatalogServer, admin: Admin) -> None:
    realm = f"realm{secrets.token_hex(4)}"
    other = await create_realm(server, realm)
    name = f"u{secrets.token_hex(4)}"
    mine = await admin.create_user(name, "lake", Grant("CATALOG_MANAGE_CONTENT"))
    async with server.client(other) as http:
        theirs = await Admin(http).create_principal(name)

        listed = await http.get(f"{MANAGEMENT}/catalogs")
        reached = await http.get(f"{LAKE}/namespaces")

    assert listed.json()["catalogs"] == [], "lake is another realm's"
    assert reached.status_code == 404
    for credential, realm_asked in ((theirs, None), (mine, realm)):
        with pytest.raises(AssertionError, match="401"):
            server.login_as(credential, realm=realm_asked).token()
