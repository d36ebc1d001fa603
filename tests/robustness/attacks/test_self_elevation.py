"""Nobody gets more than they were given: not by roles, grants, properties, scopes or exchanged tokens."""

import secrets

import httpx
import pytest

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.catalog_storm.clients import SCHEMA

from .user import LAKE, TOKENS, MakeUser, assert_forbidden

pytestmark = pytest.mark.anyio


async def test_who_may_do_everything_with_content_cannot_give_rights(
    make_user: MakeUser, admin: Admin
) -> None:
    """CATALOG_MANAGE_CONTENT is all about tables, and nothing about who may use them."""
    user, friend = await make_user("CATALOG_MANAGE_CONTENT"), await make_user()
    own = f"/catalogs/lake/catalog-roles/{user.catalog_role}"
    tries = [
        ("PUT", f"{own}/grants", {"grant": Grant("CATALOG_MANAGE_ACCESS").to_wire()}),
        ("PUT", f"{own}/grants", {"grant": Grant("CATALOG_MANAGE_ACCESS", ("ns",)).to_wire()}),
        ("PUT", f"{own}/grants", {"grant": Grant("TABLE_READ_DATA", ("ns",), "t").to_wire()}),
        ("POST", f"{own}/grants", {"grant": Grant("CATALOG_MANAGE_CONTENT").to_wire()}),
        ("PUT", f"/catalogs/lake/catalog-roles/{friend.catalog_role}/grants",
         {"grant": Grant("TABLE_READ_DATA").to_wire()}),
        ("PUT", f"/principal-roles/{user.role}/catalog-roles/lake",
         {"catalogRole": {"name": "catalog_admin"}}),
        ("PUT", f"/principals/{user.name}/principal-roles", {"principalRole": {"name": "service_admin"}}),
        ("POST", "/catalogs/lake/catalog-roles", {"catalogRole": {"name": "mine"}}),
        ("PUT", own, {"currentEntityVersion": 1, "properties": {"a": "b"}}),
        ("DELETE", own, None),
        ("POST", "/principals", {"principal": {"name": "mine"}}),
        ("POST", "/principal-roles", {"principalRole": {"name": "mine"}}),
        ("PUT", f"/principal-roles/{user.role}", {"currentEntityVersion": 1, "properties": {"a": "b"}}),
        ("PUT", f"/principals/{user.name}", {"currentEntityVersion": 1, "properties": {"a": "b"}}),
        ("PUT", f"/cynosure/principals/{user.name}/trusted-service", {"trusted": True}),
        ("POST", f"/principals/{friend.name}/rotate", None),
        ("POST", f"/principals/{friend.name}/reset", {}),
        ("POST", f"/principals/{user.name}/reset", {}),
        ("DELETE", "/catalogs/lake", None),
        ("GET", "/principals", None),
        ("GET", "/principal-roles", None),
        ("GET", "/cynosure/events", None),
    ]  # fmt: skip

    for method, path, body in tries:
        assert_forbidden(await user.manage(method, path, body))

    granted = await admin.send("GET", f"{own}/grants")
    assert [grant["privilege"] for grant in granted["grants"]] == ["CATALOG_MANAGE_CONTENT"]
    roles = await admin.send("GET", f"/principals/{user.name}/principal-roles")
    assert [role["name"] for role in roles["roles"]] == [user.role]
    friends = await admin.send("GET", f"/catalogs/lake/catalog-roles/{friend.catalog_role}/grants")
    assert friends["grants"] == []


async def test_who_manages_access_below_a_namespace_manages_none_elsewhere(
    make_user: MakeUser, root: httpx.AsyncClient
) -> None:
    await root.post(f"{LAKE}/namespaces", json={"namespace": ["other"]})
    user = await make_user(Grant("CATALOG_MANAGE_ACCESS", ("ns",)))
    own = f"/catalogs/lake/catalog-roles/{user.catalog_role}/grants"

    for grant in (
        Grant("TABLE_READ_DATA", ("other",)),
        Grant("TABLE_READ_DATA"),
        Grant("CATALOG_MANAGE_CONTENT"),
    ):
        assert_forbidden(await user.manage("PUT", own, {"grant": grant.to_wire()}))


async def test_who_manages_a_catalog_manages_no_other_and_no_principals(
    server: CatalogServer, make_user: MakeUser, admin: Admin
) -> None:
    other = f"c{secrets.token_hex(4)}"
    await admin.create_catalog(other, (server.warehouse / other).as_uri())
    user = await make_user("CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_METADATA", "CATALOG_MANAGE_CONTENT")

    for method, path, body in [
        ("PUT", f"/catalogs/{other}/catalog-roles/catalog_admin/grants",
         {"grant": Grant("CATALOG_MANAGE_CONTENT").to_wire()}),
        ("PUT", f"/principal-roles/{user.role}/catalog-roles/{other}",
         {"catalogRole": {"name": "catalog_admin"}}),
        ("POST", f"/catalogs/{other}/catalog-roles", {"catalogRole": {"name": "mine"}}),
        ("GET", f"/catalogs/{other}", None),
        ("PUT", f"/principals/{user.name}/principal-roles", {"principalRole": {"name": "service_admin"}}),
        ("POST", "/catalogs", {"catalog": {}}),
        ("POST", "/principals", {"principal": {"name": "mine"}}),
    ]:  # fmt: skip
        answer = await user.manage(method, path, body)
        assert answer.status_code in (400, 403), f"{method} {path}: {answer.text}"
        assert answer.status_code == 403 or path == "/catalogs"


async def test_a_right_to_change_properties_does_not_reach_reserved_ones(
    make_user: MakeUser, root: httpx.AsyncClient
) -> None:
    """What the server or Polaris gives a meaning to is not for users to set."""
    user = await make_user("CATALOG_MANAGE_CONTENT")
    reserved = ["polaris.config.enable-something-else", "cynosure.owner"]

    for name in reserved:
        space = await user.send("POST", f"{LAKE}/namespaces/ns/properties", {"updates": {name: "1"}})
        made = await user.send("POST", f"{LAKE}/namespaces", {"namespace": ["x"], "properties": {name: "1"}})
        table = await user.send(
            "POST",
            f"{LAKE}/namespaces/ns/tables/t",
            {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "1"}}]},
        )
        created = await user.send(
            "POST",
            f"{LAKE}/namespaces/ns/tables",
            {"name": f"r{secrets.token_hex(4)}", "schema": SCHEMA, "properties": {name: "1"}},
        )
        for answer in (space, made, table, created):
            assert answer.status_code == 400, (
                f"{name} {answer.request.url}: {answer.status_code} {answer.text}"
            )
            assert name in answer.text
    for path, body in [
        ("/principals", {"principal": {"name": "p", "properties": {reserved[0]: "1"}}}),
        ("/principal-roles", {"principalRole": {"name": "r", "properties": {reserved[0]: "1"}}}),
        ("/catalogs/lake/catalog-roles", {"catalogRole": {"name": "r", "properties": {reserved[0]: "1"}}}),
    ]:
        answer = await root.post(MANAGEMENT + path, json=body)
        assert answer.status_code == 400, f"{path}: {answer.text}"
    loaded = (await root.get(f"{LAKE}/namespaces/ns/tables/t")).json()["metadata"]["properties"]
    assert not set(reserved) & loaded.keys()


async def test_a_scope_activates_no_role_that_is_not_there(
    server: CatalogServer, make_user: MakeUser
) -> None:
    user = await make_user("TABLE_READ_DATA")
    for scope in ("PRINCIPAL_ROLE:service_admin", f"PRINCIPAL_ROLE:{user.role} PRINCIPAL_ROLE:service_admin"):
        form = {
            "grant_type": "client_credentials",
            "client_id": user.credential.client_id,
            "client_secret": user.credential.secret,
            "scope": scope,
        }
        async with server.stranger() as http:
            asked = await http.post(TOKENS, data=form)
            if asked.status_code == 200:
                # As Polaris: the token is given, and refused wherever it is shown.
                token = asked.json()["access_token"]
                used = await http.get(f"{LAKE}/namespaces", headers={"Authorization": f"Bearer {token}"})
                assert used.status_code == 401
            else:
                assert asked.status_code in (400, 401)


async def test_a_narrow_token_is_not_exchanged_for_a_wider_one(
    server: CatalogServer, make_user: MakeUser, admin: Admin
) -> None:
    user = await make_user("TABLE_READ_PROPERTIES")
    wide = f"{user.name}_wide"
    await admin.create_role(wide)
    await admin.assign_role(user.name, wide)
    await admin.assign_catalog_role("lake", "catalog_admin", wide)
    narrow = server.login_as(user.credential, scope=f"PRINCIPAL_ROLE:{user.role}")

    for scope in ("PRINCIPAL_ROLE:ALL", f"PRINCIPAL_ROLE:{wide}", "catalog", ""):
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": narrow.token(),
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            **({"scope": scope} if scope else {}),
        }
        async with server.stranger(headers={"Authorization": f"Bearer {narrow.token()}"}) as http:
            asked = await http.post(TOKENS, data=form)
            if asked.status_code != 200:
                assert asked.status_code in (400, 401)
                continue
            token = asked.json()["access_token"]
            used = await http.post(
                f"{LAKE}/namespaces",
                json={"namespace": [f"n{secrets.token_hex(4)}"]},
                headers={"Authorization": f"Bearer {token}"},
            )
            assert_forbidden(used, "NAMESPACE_CREATE")
