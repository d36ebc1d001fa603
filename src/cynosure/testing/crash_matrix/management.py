"""Requests that change catalogs, principals, roles and grants."""

from typing import Final

from cynosure.testing.admin import MANAGEMENT, Grant
from cynosure.testing.crash_matrix.probes import all_of, is_gone, lists, opens_the_door, shows
from cynosure.testing.crash_matrix.world import Call, Prepare, World

# --- catalogs --------------------------------------------------------------------------------------


async def _create_catalog(world: World) -> Call:
    name = world.fresh("c")
    path = f"{MANAGEMENT}/catalogs"
    roles = lists(f"{path}/{name}/catalog-roles", "roles", lambda found: len(found) == 1)
    return Call("POST", path, world.new_catalog(name), 201, all_of(shows(f"{path}/{name}"), roles))


async def _new_catalog_path(world: World) -> str:
    name = world.fresh("c")
    await world.send("POST", f"{MANAGEMENT}/catalogs", world.new_catalog(name))
    return f"{MANAGEMENT}/catalogs/{name}"


async def _update_catalog(world: World) -> Call:
    path = await _new_catalog_path(world)
    known = (await world.http.get(path)).json()
    body = {
        "currentEntityVersion": known["entityVersion"],
        "properties": {**known["properties"], "k": "v"},
    }
    return Call("PUT", path, body, 200, shows(path, entityVersion=known["entityVersion"] + 1))


async def _drop_catalog(world: World) -> Call:
    path = await _new_catalog_path(world)
    return Call("DELETE", path, None, 204, is_gone(path))


async def _drop_catalog_cascade(world: World) -> Call:
    path = await _new_catalog_path(world)
    name = path.rpartition("/")[2]
    await world.namespace(name)
    return Call("POST", f"{path}/drop", {"cascade": True}, 204, is_gone(path))


# --- principals and roles --------------------------------------------------------------------------


async def _create_principal(world: World) -> Call:
    name = world.fresh("p")
    probe = all_of(opens_the_door, shows(f"{MANAGEMENT}/principals/{name}"))
    return Call("POST", f"{MANAGEMENT}/principals", {"principal": {"name": name}}, 201, probe)


async def _rotate_credentials(world: World) -> Call:
    name = world.fresh("p")
    credential = await world.admin.create_principal(name)
    path = f"{MANAGEMENT}/principals/{name}/rotate"
    return Call("POST", path, None, 200, opens_the_door, credential)


async def _reset_credentials(world: World) -> Call:
    name = world.fresh("p")
    await world.admin.create_principal(name)
    return Call("POST", f"{MANAGEMENT}/principals/{name}/reset", {}, 200, opens_the_door)


async def _update_principal(world: World) -> Call:
    name = world.fresh("p")
    await world.admin.create_principal(name)
    return await _update(world, f"{MANAGEMENT}/principals/{name}")


async def _delete_principal(world: World) -> Call:
    name = world.fresh("p")
    await world.admin.create_principal(name)
    path = f"{MANAGEMENT}/principals/{name}"
    return Call("DELETE", path, None, 204, is_gone(path))


async def _trust_service(world: World) -> Call:
    name = world.fresh("p")
    await world.admin.create_principal(name)
    path = f"{MANAGEMENT}/cynosure/principals/{name}/trusted-service"
    probe = shows(f"{MANAGEMENT}/principals/{name}", trustedService=True)
    return Call("PUT", path, {"trusted": True}, 200, probe)


async def _create_role(world: World) -> Call:
    name = world.fresh("r")
    path = f"{MANAGEMENT}/principal-roles"
    return Call("POST", path, {"principalRole": {"name": name}}, 201, shows(f"{path}/{name}"))


async def _update_role(world: World) -> Call:
    path = f"{MANAGEMENT}/principal-roles/{await world.role()}"
    return await _update(world, path)


async def _update(world: World, path: str) -> Call:
    version = (await world.http.get(path)).json()["entityVersion"]
    body = {"currentEntityVersion": version, "properties": {"k": "v"}}
    return Call("PUT", path, body, 200, shows(path, entityVersion=version + 1))


async def _delete_role(world: World) -> Call:
    path = f"{MANAGEMENT}/principal-roles/{await world.role()}"
    return Call("DELETE", path, None, 204, is_gone(path))


async def _assign_role(world: World) -> Call:
    name, role = world.fresh("p"), await world.role()
    await world.admin.create_principal(name)
    path = f"{MANAGEMENT}/principals/{name}/principal-roles"
    probe = lists(path, "roles", lambda found: [each["name"] for each in found] == [role])
    return Call("PUT", path, {"principalRole": {"name": role}}, 201, probe)


async def _take_role(world: World) -> Call:
    assign = await _assign_role(world)
    await world.send(assign.method, assign.path, assign.body)
    path = f"{assign.path}/{assign.body['principalRole']['name']}"
    return Call("DELETE", path, None, 204, lists(assign.path, "roles", lambda found: not found))


async def _create_catalog_role(world: World) -> Call:
    name = world.fresh("cr")
    path = f"{MANAGEMENT}/catalogs/lake/catalog-roles"
    return Call("POST", path, {"catalogRole": {"name": name}}, 201, shows(f"{path}/{name}"))


async def _assign_catalog_role(world: World) -> Call:
    catalog_role, role = await world.catalog_role(), await world.role()
    path = f"{MANAGEMENT}/principal-roles/{role}/catalog-roles/lake"
    probe = lists(path, "roles", lambda found: [each["name"] for each in found] == [catalog_role])
    return Call("PUT", path, {"catalogRole": {"name": catalog_role}}, 201, probe)


async def _take_catalog_role(world: World) -> Call:
    assign = await _assign_catalog_role(world)
    await world.send(assign.method, assign.path, assign.body)
    path = f"{assign.path}/{assign.body['catalogRole']['name']}"
    return Call("DELETE", path, None, 204, lists(assign.path, "roles", lambda found: not found))


async def _update_catalog_role(world: World) -> Call:
    return await _update(world, f"{MANAGEMENT}/catalogs/lake/catalog-roles/{await world.catalog_role()}")


async def _delete_catalog_role(world: World) -> Call:
    path = f"{MANAGEMENT}/catalogs/lake/catalog-roles/{await world.catalog_role()}"
    return Call("DELETE", path, None, 204, is_gone(path))


async def _grant(world: World) -> Call:
    path = f"{MANAGEMENT}/catalogs/lake/catalog-roles/{await world.catalog_role()}/grants"
    body = {"grant": Grant("TABLE_READ_DATA").to_wire()}
    return Call("PUT", path, body, 201, lists(path, "grants", lambda found: len(found) == 1))


async def _revoke(world: World) -> Call:
    path = f"{MANAGEMENT}/catalogs/lake/catalog-roles/{await world.catalog_role()}/grants"
    body = {"grant": Grant("TABLE_READ_DATA").to_wire()}
    await world.send("PUT", path, body)
    return Call("POST", path, body, 201, lists(path, "grants", lambda found: not found))


MANAGEMENT_REQUESTS: Final[tuple[Prepare, ...]] = (
    _create_catalog,
    _update_catalog,
    _drop_catalog,
    _drop_catalog_cascade,
    _create_principal,
    _rotate_credentials,
    _reset_credentials,
    _update_principal,
    _delete_principal,
    _trust_service,
    _create_role,
    _update_role,
    _delete_role,
    _assign_role,
    _take_role,
    _create_catalog_role,
    _update_catalog_role,
    _assign_catalog_role,
    _take_catalog_role,
    _delete_catalog_role,
    _grant,
    _revoke,
)
