"""Requests that change what is in a catalog, and some that are refused."""

import asyncio
import uuid
from pathlib import Path
from typing import Any, Final

import httpx

from cynosure.testing.appended import data_file
from cynosure.testing.crash_matrix.probes import all_of, is_gone, like_answered, lists, shows
from cynosure.testing.crash_matrix.world import (
    CATALOG,
    OURS,
    POLARIS,
    REPORT,
    SCHEMA,
    Call,
    Prepare,
    World,
    counting,
    new_policy,
    new_view,
)

# --- namespaces ------------------------------------------------------------------------------------


async def _create_namespace(world: World) -> Call:
    name = world.fresh("n")
    path = f"{CATALOG}/lake/namespaces"
    return Call("POST", path, {"namespace": [name], "properties": {"k": "v"}}, 200, shows(f"{path}/{name}"))


async def _update_namespace(world: World) -> Call:
    namespace = await world.namespace()
    body = {"updates": {"k": "v"}, "removals": ["missing"]}
    return Call("POST", f"{namespace}/properties", body, 200, shows(namespace, properties__k="v"))


async def _drop_namespace(world: World) -> Call:
    namespace = await world.namespace()
    return Call("DELETE", namespace, None, 204, is_gone(namespace))


async def _drop_namespace_cascade(world: World) -> Call:
    table = await world.table()
    namespace = table.removesuffix("/tables/t")
    path = f"{namespace.replace(CATALOG, OURS)}/drop"
    probe = all_of(is_gone(namespace), is_gone(table))
    return Call("POST", path, {"cascade": True}, 204, probe)


# --- tables ----------------------------------------------------------------------------------------


async def _create_table(world: World) -> Call:
    namespace = await world.namespace()
    body = {"name": "t", "schema": SCHEMA}
    return Call("POST", f"{namespace}/tables", body, 200, like_answered(f"{namespace}/tables/t"))


async def _stage_table(world: World) -> Call:
    namespace = await world.namespace()
    body = {"name": "t", "schema": SCHEMA, "stage-create": True}
    probe = is_gone(f"{namespace}/tables/t")
    return Call("POST", f"{namespace}/tables", body, 200, probe, may_commit=True)


async def _register_table(world: World) -> Call:
    namespace = await world.namespace()
    file, _ = world.write_metadata("lake", world.fresh("registered"))
    body = {"name": "t", "metadata-location": file}
    return Call("POST", f"{namespace}/register", body, 200, like_answered(f"{namespace}/tables/t"))


async def _commit_table(world: World) -> Call:
    table = await world.table()
    found = (await world.http.get(table)).json()["metadata"]
    requirements = [{"type": "assert-table-uuid", "uuid": found["table-uuid"]}]
    body = {"requirements": requirements, "updates": counting("v")}

    async def once(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        log = (await http.get(table)).json()["metadata"]["metadata-log"]
        return "" if len(log) == 1 else f"{len(log)} commits"

    return Call("POST", table, body, 200, all_of(like_answered(table), once))


def _shape_of(table: str, change: str) -> str:
    return f"{table.replace(CATALOG, OURS)}/{change}"


async def _append_files(world: World) -> Call:
    table = await world.table()
    location = (await world.send("GET", table)).json()["metadata"]["location"]
    file = data_file(location, "one")

    async def probe(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        metadata = (await http.get(table)).json()["metadata"]
        found = [each["snapshot-id"] for each in metadata["snapshots"]]
        told = answer.json()["snapshot-id"]
        return "" if found == [told] else f"GET {table}: snapshots {found}, not [{told}]"

    return Call("POST", _shape_of(table, "append"), {"data-files": [file]}, 200, probe)


async def _order_maintenance(world: World) -> Call:
    table = await world.table()
    runs = f"{OURS}/lake/maintenance/runs?namespace={table.split('/')[-3]}"
    body = {"operation": "TABLE_PURGE", "properties": {"dryRun": "true"}}

    async def probe(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        found = [run["task-id"] for each in (await http.get(runs)).json()["tables"] for run in each["runs"]]
        told = answer.json()["task_id"]
        return "" if found == [told] else f"GET {runs}: tasks {found}, not [{told}]"

    return Call("POST", _shape_of(table, "maintenance"), body, 202, probe)


async def _add_columns(world: World) -> Call:
    table = await world.table()
    body = {
        "columns": [{"name": "added", "type": {"type": "list", "element": "int", "element-required": True}}]
    }
    probe = all_of(like_answered(table), shows(table, metadata__last_column_id=3))
    return Call("POST", _shape_of(table, "add-columns"), body, 200, probe)


async def _set_partitioning(world: World) -> Call:
    table = await world.table()
    body = {"fields": [{"source": "id", "transform": "bucket[4]"}]}
    probe = all_of(like_answered(table), shows(table, metadata__last_partition_id=1000))
    return Call("POST", _shape_of(table, "set-partitioning"), body, 200, probe)


async def _set_sort_order(world: World) -> Call:
    table = await world.table()
    body = {"fields": [{"source": "id", "direction": "desc"}]}
    probe = all_of(like_answered(table), shows(table, metadata__default_sort_order_id=1))
    return Call("POST", _shape_of(table, "set-sort-order"), body, 200, probe)


async def _rename_table(world: World) -> Call:
    namespace = await world.namespace()
    await world.table(namespace)
    name = namespace.rpartition("/")[2]
    body = {
        "source": {"namespace": [name], "name": "t"},
        "destination": {"namespace": [name], "name": "u"},
    }
    probe = all_of(is_gone(f"{namespace}/tables/t"), shows(f"{namespace}/tables/u"))
    return Call("POST", f"{CATALOG}/lake/tables/rename", body, 204, probe)


async def _drop_table(world: World) -> Call:
    table = await world.table()
    return Call("DELETE", table, None, 204, is_gone(table))


async def _purge_table(world: World) -> Call:
    table = await world.table()
    location = (await world.send("GET", table)).json()["metadata"]["location"]

    async def has_no_files(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        left = await asyncio.to_thread(_count_files, location)
        return f"{left} files of {table} are left" if left else ""

    probe = all_of(is_gone(table), has_no_files)
    return Call("DELETE", f"{table}?purgeRequested=true", None, 204, probe, is_uneven=True)


def _count_files(location: str) -> int:
    return sum(each.is_file() for each in Path(location.removeprefix("file://")).rglob("*"))


async def _unregister_table(world: World) -> Call:
    table = await world.table()
    return Call("POST", f"{table}/unregister", None, 200, is_gone(table))


async def _transaction(world: World) -> Call:
    namespace = await world.namespace()
    tables = [await world.table(namespace, name) for name in ("t", "u")]
    name = namespace.rpartition("/")[2]
    changes = [
        {
            "identifier": {"namespace": [name], "name": table.rpartition("/")[2]},
            "requirements": [],
            "updates": counting("v"),
        }
        for table in tables
    ]
    probe = all_of(*(shows(table, metadata__properties__k="v") for table in tables))
    return Call("POST", f"{CATALOG}/lake/transactions/commit", {"table-changes": changes}, 204, probe)


async def _undrop(world: World) -> Call:
    table = await world.table()
    known = (await world.http.get(table)).json()["metadata-location"]
    await world.send("DELETE", table)
    dropped = await _list_dropped(world.http)
    namespace = table.split("/")[-3]
    (drop_id,) = (each["id"] for each in dropped if each["namespace"] == [namespace])
    path = f"{OURS}/lake/dropped/{drop_id}/restore"
    return Call("POST", path, {}, 200, shows(table, **{"metadata_location": known}))


async def _list_dropped(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All that can be restored in the lake."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = (await http.get(f"{OURS}/lake/dropped", params={"pageToken": token})).json()
        found += page["dropped"]
        token = page.get("next-page-token") or ""
        if not token:
            return found


async def _report_metrics(world: World) -> Call:
    table = await world.table()
    path = f"{table.replace(CATALOG, OURS)}/metrics"
    probe = lists(path, "reports", lambda found: len(found) == 1)
    return Call("POST", f"{table}/metrics", REPORT, 204, probe)


async def _notification(world: World) -> Call:
    name = world.fresh("n")
    file, table_uuid = world.write_metadata("ext", world.fresh("told"))
    payload = {"table-name": "t", "timestamp": 1, "table-uuid": table_uuid, "metadata-location": file}
    path = f"{CATALOG}/ext/namespaces/{name}/tables/t"
    body = {"notification-type": "CREATE", "payload": payload}
    return Call("POST", f"{path}/notifications", body, 204, shows(path, metadata_location=file))


# --- views, generic tables, policies ---------------------------------------------------------------


async def _create_view(world: World) -> Call:
    namespace = await world.namespace()
    return Call("POST", f"{namespace}/views", new_view(), 200, like_answered(f"{namespace}/views/v"))


async def _replace_view(world: World) -> Call:
    view = await world.view()
    return Call("POST", view, {"requirements": [], "updates": counting("v")}, 200, like_answered(view))


async def _drop_view(world: World) -> Call:
    view = await world.view()
    return Call("DELETE", view, None, 204, is_gone(view))


async def _rename_view(world: World) -> Call:
    view = await world.view()
    namespace = view.split("/")[-3]
    body = {
        "source": {"namespace": [namespace], "name": "v"},
        "destination": {"namespace": [namespace], "name": "w"},
    }
    probe = all_of(is_gone(view), shows(f"{view.removesuffix('/v')}/w"))
    return Call("POST", f"{CATALOG}/lake/views/rename", body, 204, probe)


async def _register_view(world: World) -> Call:
    view = await world.view()
    file = (await world.http.get(view)).json()["metadata-location"]
    await world.send("DELETE", view)
    namespace = view.removesuffix("/views/v")
    body = {"name": "w", "metadata-location": file}
    return Call("POST", f"{namespace}/register-view", body, 200, like_answered(f"{namespace}/views/w"))


async def _create_generic_table(world: World) -> Call:
    namespace = (await world.namespace()).replace(CATALOG, POLARIS)
    path = f"{namespace}/generic-tables"
    return Call("POST", path, {"name": "g", "format": "csv"}, 200, like_answered(f"{path}/g"))


async def _drop_generic_table(world: World) -> Call:
    path = f"{(await world.namespace()).replace(CATALOG, POLARIS)}/generic-tables"
    await world.send("POST", path, {"name": "g", "format": "csv"})
    return Call("DELETE", f"{path}/g", None, 204, is_gone(f"{path}/g"))


async def _create_policy(world: World) -> Call:
    namespace = (await world.namespace()).replace(CATALOG, POLARIS)
    path = f"{namespace}/policies"
    return Call("POST", path, new_policy(), 200, like_answered(f"{path}/p"))


async def _update_policy(world: World) -> Call:
    policy = await world.policy()
    body = {"content": '{"enable":false}', "current-policy-version": 0}
    return Call("PUT", policy, body, 200, all_of(like_answered(policy), shows(policy, policy__version=1)))


async def _attach_policy(world: World) -> Call:
    policy = await world.policy()
    namespace = policy.split("/")[-3]
    body = {"target": {"type": "namespace", "path": [namespace]}}
    path = f"{POLARIS}/lake/applicable-policies?namespace={namespace}"
    probe = lists(path, "applicable-policies", lambda found: len(found) == 1)
    return Call("PUT", f"{policy}/mappings", body, 204, probe)


async def _detach_policy(world: World) -> Call:
    attach = await _attach_policy(world)
    await world.send(attach.method, attach.path, attach.body)
    namespace = attach.body["target"]["path"][0]
    path = f"{POLARIS}/lake/applicable-policies?namespace={namespace}"
    probe = lists(path, "applicable-policies", lambda found: not found)
    return Call("POST", attach.path, attach.body, 204, probe)


async def _drop_policy(world: World) -> Call:
    policy = await world.policy()
    return Call("DELETE", policy, None, 204, is_gone(policy))


# --- refusals --------------------------------------------------------------------------------------


async def _refused_as_taken(world: World) -> Call:
    namespace = await world.namespace()
    name = namespace.rpartition("/")[2]
    return Call("POST", f"{CATALOG}/lake/namespaces", {"namespace": [name]}, 409, shows(namespace))


async def _refused_as_missing(world: World) -> Call:
    table = f"{await world.namespace()}/tables/t"
    return Call("DELETE", table, None, 404, is_gone(table))


async def _refused_as_outdated(world: World) -> Call:
    table = await world.table()
    known = (await world.http.get(table)).json()["metadata-location"]
    requirements = [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]
    body = {"requirements": requirements, "updates": counting("v")}
    return Call("POST", table, body, 409, shows(table, metadata_location=known))


CONTENT: Final[tuple[Prepare, ...]] = (
    _create_namespace,
    _update_namespace,
    _drop_namespace,
    _drop_namespace_cascade,
    _create_table,
    _stage_table,
    _register_table,
    _commit_table,
    _append_files,
    _order_maintenance,
    _add_columns,
    _set_partitioning,
    _set_sort_order,
    _rename_table,
    _drop_table,
    _purge_table,
    _unregister_table,
    _transaction,
    _undrop,
    _report_metrics,
    _notification,
    _create_view,
    _replace_view,
    _drop_view,
    _rename_view,
    _register_view,
    _create_generic_table,
    _drop_generic_table,
    _create_policy,
    _update_policy,
    _attach_policy,
    _detach_policy,
    _drop_policy,
    _refused_as_taken,
    _refused_as_missing,
    _refused_as_outdated,
)
