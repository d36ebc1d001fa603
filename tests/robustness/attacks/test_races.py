"""Rights that change while they are used, and while others change them."""

import asyncio
import secrets

import pytest

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.catalog_storm.clients import SCHEMA

from .user import LAKE, MakeUser, assert_forbidden

pytestmark = pytest.mark.anyio


async def test_two_admins_who_grant_revoke_and_drop_at_once_leave_one_of_their_states(
    server: CatalogServer, admin: Admin, make_user
) -> None:
    """Whatever the order was: no error of the server's own, and a dropped role gives nobody anything."""
    await admin.http.post(f"{LAKE}/namespaces", json={"namespace": ["race"]})
    for _ in range(5):
        user = await make_user()
        role = f"/catalogs/lake/catalog-roles/{user.catalog_role}"
        grant = {"grant": Grant("NAMESPACE_READ_PROPERTIES", ("race",)).to_wire()}
        answers = await asyncio.gather(
            admin.http.put(f"{MANAGEMENT}{role}/grants", json=grant),
            admin.http.post(f"{MANAGEMENT}{role}/grants", json=grant),
            admin.http.put(
                f"{MANAGEMENT}/principal-roles/{user.role}/catalog-roles/lake",
                json={"catalogRole": {"name": user.catalog_role}},
            ),
            admin.http.delete(MANAGEMENT + role),
            admin.http.put(f"{MANAGEMENT}{role}/grants", json=grant),
        )
        assert {answer.status_code for answer in answers} <= {201, 204, 404}, [a.text for a in answers]
        assert answers[3].status_code == 204
        assert_forbidden(await user.send("GET", f"{LAKE}/namespaces/race"))

        # A role of the same name is another role.
        await admin.create_catalog_role("lake", user.catalog_role)
        found = await admin.send("GET", f"{role}/grants")
        assert found["grants"] == []
        assert_forbidden(await user.send("GET", f"{LAKE}/namespaces/race"))


async def test_what_was_granted_on_a_dropped_table_is_not_granted_on_its_successor(
    admin: Admin, make_user
) -> None:
    name = f"t{secrets.token_hex(4)}"
    table = f"{LAKE}/namespaces/ns/tables"
    await admin.http.post(table, json={"name": name, "schema": SCHEMA})
    user = await make_user(Grant("TABLE_READ_PROPERTIES", ("ns",), name))
    assert (await user.send("GET", f"{table}/{name}")).status_code == 200

    renamed = {
        "source": {"namespace": ["ns"], "name": name},
        "destination": {"namespace": ["ns"], "name": f"{name}_2"},
    }
    (await admin.http.post(f"{LAKE}/tables/rename", json=renamed)).raise_for_status()
    assert (await user.send("GET", f"{table}/{name}_2")).status_code == 200, "a grant goes with its table"
    (await admin.http.post(table, json={"name": name, "schema": SCHEMA})).raise_for_status()
    assert_forbidden(await user.send("GET", f"{table}/{name}"), "TABLE_READ_PROPERTIES")

    (await admin.http.delete(f"{table}/{name}_2")).raise_for_status()
    (await admin.http.post(table, json={"name": f"{name}_2", "schema": SCHEMA})).raise_for_status()
    assert_forbidden(await user.send("GET", f"{table}/{name}_2"), "TABLE_READ_PROPERTIES")


async def test_no_commit_that_began_after_a_revoke_was_answered_is_made(
    admin: Admin, make_user: MakeUser
) -> None:
    """While clients commit without a pause: those in flight may end either way, later ones are refused."""
    name = f"t{secrets.token_hex(4)}"
    table = f"{LAKE}/namespaces/ns/tables/{name}"
    await admin.http.post(f"{LAKE}/namespaces/ns/tables", json={"name": name, "schema": SCHEMA})
    right = Grant("TABLE_WRITE_PROPERTIES", ("ns",), name)
    user = await make_user(right)
    is_revoked = False
    late: list[int] = []
    early: list[int] = []

    async def commit(writer: int) -> None:
        for number in range(1000):
            began_late = is_revoked
            updates = [{"action": "set-properties", "updates": {f"w{writer}": str(number)}}]
            answer = await user.send("POST", table, {"requirements": [], "updates": updates})
            (late if began_late else early).append(answer.status_code)
            if len(late) > 20:
                return

    async def revoke() -> None:
        nonlocal is_revoked
        while early.count(200) < 10:  # noqa: ASYNC110 - whatever is answered first
            await asyncio.sleep(0.005)
        await admin.revoke("lake", user.catalog_role, right)
        is_revoked = True

    await asyncio.gather(revoke(), *(commit(writer) for writer in range(8)))

    assert set(late) == {403}
    assert set(early) <= {200, 403}
    assert early.count(200) >= 10


async def test_a_commit_never_lands_on_the_successor_of_what_its_sender_may_change(
    admin: Admin, make_user: MakeUser
) -> None:
    """The table is renamed and another one takes its name, again and again, under commits by name."""
    name = f"t{secrets.token_hex(4)}"
    tables = f"{LAKE}/namespaces/ns/tables"
    (await admin.http.post(tables, json={"name": name, "schema": SCHEMA})).raise_for_status()
    user = await make_user(Grant("TABLE_WRITE_PROPERTIES", ("ns",), name))
    statuses: list[int] = []
    is_over = False

    async def commit(writer: int) -> None:
        while not is_over:
            updates = [{"action": "set-properties", "updates": {"by": f"{user.name} {writer}"}}]
            answer = await user.send("POST", f"{tables}/{name}", {"requirements": [], "updates": updates})
            statuses.append(answer.status_code)

    async def swap() -> None:
        nonlocal is_over
        for number in range(8):
            wanted = len(statuses) + 4
            while len(statuses) < wanted:  # noqa: ASYNC110 - whatever is answered first
                await asyncio.sleep(0.002)
            for source, destination in ((name, f"{name}_mine"), (f"{name}_mine", name)):
                await rename(admin, source, destination)
                if destination == name:
                    break
                # Nobody was given anything on this one.
                (await admin.http.post(tables, json={"name": name, "schema": SCHEMA})).raise_for_status()
                foreign = len(statuses)
                while 403 not in statuses[foreign:]:  # noqa: ASYNC110 - whatever is answered first
                    await asyncio.sleep(0.002)
                await rename(admin, name, f"{name}_foreign_{number}")
        is_over = True

    async with asyncio.timeout(90):
        await asyncio.gather(swap(), *(commit(writer) for writer in range(4)))

    assert set(statuses) <= {200, 403, 404, 409}
    assert {200, 403} <= set(statuses)
    for number in range(8):
        loaded = (await admin.http.get(f"{tables}/{name}_foreign_{number}")).raise_for_status().json()
        assert "by" not in loaded["metadata"]["properties"]
    mine = (await admin.http.get(f"{tables}/{name}")).json()
    assert mine["metadata"]["properties"]["by"].startswith(user.name)


async def rename(admin: Admin, source: str, destination: str) -> None:
    body = {
        "source": {"namespace": ["ns"], "name": source},
        "destination": {"namespace": ["ns"], "name": destination},
    }
    (await admin.http.post(f"{LAKE}/tables/rename", json=body)).raise_for_status()
