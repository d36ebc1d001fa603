"""Every operation of a catalog and exactly what it needs, written from what Apache Polaris documents."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.errors import NoSuchPlan, NoSuchPlanTask
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.files.sweep import sweep_strays
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.add_columns import add_columns
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.cancel_plan import cancel_plan
from cynosure.catalog.operations.check_storage import check_storage
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.end_purging import end_purging
from cynosure.catalog.operations.export_table import export_table
from cynosure.catalog.operations.fetch_plan import fetch_plan
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.list_reports import list_reports
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.list_views import list_views
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.catalog.operations.load_dropped import load_dropped
from cynosure.catalog.operations.load_namespace import load_namespace, namespace_exists
from cynosure.catalog.operations.load_table import load_table, load_table_for_data, table_exists
from cynosure.catalog.operations.load_tombstone import load_tombstone, load_tombstone_credentials
from cynosure.catalog.operations.load_view import load_view, view_exists
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.register_view import register_view
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.rename_view import rename_view
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.catalog.operations.report_metrics import Report, report_metrics
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.set_partitioning import set_partitioning
from cynosure.catalog.operations.set_sort_order import set_sort_order
from cynosure.catalog.operations.sign_planned import sign_planned
from cynosure.catalog.operations.sign_request import sign_request
from cynosure.catalog.operations.table_statistics import table_statistics
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.catalog.planning.request import ScanRequest
from cynosure.catalog.purging.purge import begin_purge
from cynosure.catalog.purging.tombstone import Tombstone
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.list_assignees import list_assignees
from cynosure.catalog.roles.list_catalog_roles import list_catalog_roles
from cynosure.catalog.roles.list_catalog_roles_of_principal_role import list_catalog_roles_of_principal_role
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.catalog.roles.update_catalog_role import update_catalog_role
from cynosure.catalog.shaping import ShapeOf
from cynosure.catalog.table_changes import TableChange
from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput
from cynosure.common.keyring import Keyring
from cynosure.federation.clients import Clients
from cynosure.federation.migration.migrate import Step, migrate
from cynosure.federation.reconcile import reconcile
from cynosure.federation.settings import FederationSettings
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.shaping.sort_order import NewSortField
from cynosure.iceberg.views import ViewUpdate
from cynosure.persistence.spi import ObjId
from cynosure.storage.access.ports import StoreRequest
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table, on_view
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.tables import T, decoded, requirements, updates
from tests.catalog.world import NS, OTHER, VERSION, Lake, V
from tests.federation.federated import as_federated

Given = Any
Act = Callable[[Lake, Caller, Given], Awaitable[object]]
NEW = Identifier(NS, "new")
MOVED = Identifier(OTHER, "moved")
GRANT = Grant("table", P.TABLE_LIST, NS, "t")


class Case(NamedTuple):
    """An operation and what it needs."""

    name: str
    act: Act
    needs: Sequence[Grant]
    given: Callable[[Lake], Awaitable[Given]] | None = None
    """Made beforehand, and handed to `act`."""


# --- what has to be there before --------------------------------------------------------------------------


async def given_up_table(lake: Lake) -> str:
    return (await unregister_table(lake.catalog, ROOT, T)).metadata_location or ""


async def given_up_view(lake: Lake) -> str:
    state = await load_view(lake.catalog, ROOT, V)
    await drop_view(lake.catalog, ROOT, V)
    # Elsewhere: what was dropped is held for whoever dropped it.
    moved = lake.catalog.base.child("given-up")
    file = moved.child("metadata", "v1.metadata.json")
    await lake.catalog.files.write(file, state.json.replace(state.location.encode(), moved.text.encode()))
    return file.text


async def current_file(lake: Lake) -> str:
    return (await load_table(lake.catalog, ROOT, T)).metadata_location or ""


async def dropped_table(lake: Lake) -> ObjId:
    await drop_table(lake.catalog, ROOT, T)
    return (await list_dropped(lake.catalog, ROOT, size=1)).entries[0][0]


async def entombed_table(lake: Lake) -> Tombstone:
    executor = lake.directory.shared.executor
    assert isinstance(executor, ScriptedExecutor)
    executor.work = None
    return (await begin_purge(lake.catalog, ROOT, T)).tombstone


async def a_role(lake: Lake) -> None:
    await create_catalog_role(lake.catalog, ROOT, "reader", {})


async def a_granted_role(lake: Lake) -> None:
    await a_role(lake)
    await grant_privilege(lake.catalog, ROOT, "reader", GRANT)


async def staged(lake: Lake) -> TableChange:
    made = await create_table(lake.catalog, ROOT, CreateTable(NS, "new", SCHEMA, is_staged=True))
    metadata = msgspec.json.decode(made.answer.metadata)
    wanted = updates(
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    )
    return TableChange(NEW, requirements({"type": "assert-create"}), wanted)


# --- operations -------------------------------------------------------------------------------------------


def commit(*actions: dict) -> Act:
    return lambda lake, who, _: commit_table(lake.catalog, who, TableChange(T, [], updates(*actions)))


SET = {"action": "set-properties", "updates": {"k": "v"}}
REMOVE = {"action": "remove-properties", "removals": ["k"]}
SPEC = {"action": "set-default-spec", "spec-id": 0}
SCAN, COMMIT = Report("scan-report", b"{}"), Report("commit-report", b"{}")
VIEW_SET = msgspec.json.decode(msgspec.json.encode([SET]), type=list[ViewUpdate])
ALL = Paging()


async def sign(lake: Lake, who: Caller, _: Any) -> None:
    # Of local files nothing can be signed, which only those hear who may read the table.
    with pytest.raises(BadInput, match="are not signed"):
        await sign_request(lake.catalog, who, T, StoreRequest("GET", "s3://a/b", {}))


async def append_one(lake: Lake, who: Caller, _: Any) -> None:
    location = decoded(await load_table(lake.catalog, ROOT, T))["location"]
    file = {
        "content": "data",
        "file-path": f"{location}/data/new.parquet",
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": 10,
        "record-count": 1,
    }
    await append_files(lake.catalog, who, T, Addition(data_files=[file]))


async def ask_for_plan(lake: Lake, who: Caller, _: Any) -> None:
    # That there is no such plan, only those hear who may plan.
    with pytest.raises(NoSuchPlan):
        await fetch_plan(lake.catalog, who, T, "x")
    with pytest.raises(NoSuchPlan):
        await cancel_plan(lake.catalog, who, T, "x")
    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(lake.catalog, who, T, "x")


async def sign_for_plan(lake: Lake, who: Caller, _: Any) -> None:
    with pytest.raises(NoSuchPlan):
        await sign_planned(lake.catalog, who, T, "x", StoreRequest("GET", "s3://a/b", {}))


def table(wanted: str, **options: bool) -> CreateTable:
    return CreateTable(NS, wanted, SCHEMA, **options)


CASES = [
    # namespaces
    Case(
        "list top", lambda w, who, _: list_namespaces(w.catalog, who, (), ALL), on_catalog(P.NAMESPACE_LIST)
    ),
    Case(
        "list below",
        lambda w, who, _: list_namespaces(w.catalog, who, NS, ALL),
        on_namespace(NS, P.NAMESPACE_LIST),
    ),
    Case(
        "create top",
        lambda w, who, _: create_namespace(w.catalog, who, ("x",), {}),
        on_catalog(P.NAMESPACE_CREATE),
    ),
    Case(
        "create below",
        lambda w, who, _: create_namespace(w.catalog, who, (*NS, "x"), {}),
        on_namespace(NS, P.NAMESPACE_CREATE),
    ),
    Case(
        "load namespace",
        lambda w, who, _: load_namespace(w.catalog, who, NS),
        on_namespace(NS, P.NAMESPACE_READ_PROPERTIES),
    ),
    Case(
        "namespace exists",
        lambda w, who, _: namespace_exists(w.catalog, who, NS),
        on_namespace(NS, P.NAMESPACE_LIST),
    ),
    Case(
        "drop namespace",
        lambda w, who, _: drop_namespace(w.catalog, who, OTHER),
        on_namespace(OTHER, P.NAMESPACE_DROP),
    ),
    Case(
        "update namespace",
        lambda w, who, _: update_namespace_properties(
            w.catalog, who, NS, PropertiesUpdate(updates={"k": "v"})
        ),
        on_namespace(NS, P.NAMESPACE_WRITE_PROPERTIES),
    ),
    # tables
    Case(
        "list tables", lambda w, who, _: list_tables(w.catalog, who, NS, ALL), on_namespace(NS, P.TABLE_LIST)
    ),
    Case(
        "list page of tables",
        lambda w, who, _: list_tables(w.catalog, who, NS, Paging("", 1)),
        on_namespace(NS, P.TABLE_LIST),
    ),
    Case(
        "create table",
        lambda w, who, _: create_table(w.catalog, who, table("new")),
        on_namespace(NS, P.TABLE_CREATE),
    ),
    Case(
        "stage table",
        lambda w, who, _: create_table(w.catalog, who, table("new", is_staged=True)),
        on_namespace(NS, P.TABLE_CREATE),
    ),
    Case(
        "create table delegated",
        lambda w, who, _: create_table(w.catalog, who, table("new"), delegation=ANY_WAY),
        on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA),
    ),
    Case(
        "stage table delegated",
        lambda w, who, _: create_table(w.catalog, who, table("new", is_staged=True), delegation=ANY_WAY),
        on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA),
    ),
    Case(
        "commit staged",
        lambda w, who, change: commit_table(w.catalog, who, change),
        on_namespace(NS, P.TABLE_CREATE),
        staged,
    ),
    Case(
        "register",
        lambda w, who, at: register_table(w.catalog, who, T, at),
        on_namespace(NS, P.TABLE_CREATE),
        given_up_table,
    ),
    Case(
        "register to write",
        lambda w, who, at: register_table(w.catalog, who, T, at, delegation=ANY_WAY),
        on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA),
        given_up_table,
    ),
    Case(
        "register to read",
        lambda w, who, at: register_table(w.catalog, who, T, at, delegation=ANY_WAY),
        on_namespace(NS, P.TABLE_CREATE, P.TABLE_READ_DATA),
        given_up_table,
    ),
    Case(
        "register over nothing",
        lambda w, who, at: register_table(w.catalog, who, T, at, is_overwrite=True),
        on_namespace(NS, P.TABLE_CREATE),
        given_up_table,
    ),
    Case(
        "register over a table",
        lambda w, who, at: register_table(w.catalog, who, T, at, is_overwrite=True),
        on_table(T, P.TABLE_FULL_METADATA),
        current_file,
    ),
    Case(
        "register over a table to write",
        lambda w, who, at: register_table(w.catalog, who, T, at, is_overwrite=True, delegation=ANY_WAY),
        on_table(T, P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA),
        current_file,
    ),
    Case("load table", lambda w, who, _: load_table(w.catalog, who, T), on_table(T, P.TABLE_READ_PROPERTIES)),
    Case(
        "load table to read",
        lambda w, who, _: load_table_for_data(w.catalog, who, T),
        on_table(T, P.TABLE_READ_DATA),
    ),
    Case(
        "load table to write",
        lambda w, who, _: load_table_for_data(w.catalog, who, T),
        on_table(T, P.TABLE_WRITE_DATA),
    ),
    Case(
        "load credentials",
        lambda w, who, _: load_credentials(w.catalog, who, T),
        on_table(T, P.TABLE_READ_DATA),
    ),
    Case(
        "plan a scan",
        lambda w, who, _: plan_scan(w.catalog, who, T, ScanRequest()),
        on_table(T, P.TABLE_READ_DATA),
    ),
    Case("ask for a plan", ask_for_plan, on_table(T, P.TABLE_READ_DATA)),
    Case("sign for a plan", sign_for_plan, on_table(T, P.TABLE_READ_DATA)),
    Case("sign a request", sign, on_table(T, P.TABLE_READ_DATA)),
    Case("table exists", lambda w, who, _: table_exists(w.catalog, who, T), on_table(T, P.TABLE_LIST)),
    Case("commit properties", commit(SET), on_table(T, P.TABLE_SET_PROPERTIES)),
    Case(
        "commit two kinds",
        commit(SET, REMOVE),
        on_table(T, P.TABLE_SET_PROPERTIES, P.TABLE_REMOVE_PROPERTIES),
    ),
    Case("commit what has no privilege of its own", commit(SPEC), on_table(T, P.TABLE_WRITE_PROPERTIES)),
    Case("commit nothing", commit(), on_table(T, P.TABLE_WRITE_PROPERTIES)),
    Case("append files", append_one, on_table(T, P.TABLE_ADD_SNAPSHOT, P.TABLE_SET_SNAPSHOT_REF)),
    Case(
        "add columns",
        lambda w, who, _: add_columns(w.catalog, who, ShapeOf(T), [NewColumn(name="new", type="int")]),
        on_table(T, P.TABLE_ADD_SCHEMA, P.TABLE_SET_CURRENT_SCHEMA),
    ),
    Case(
        "set partitioning",
        lambda w, who, _: set_partitioning(w.catalog, who, ShapeOf(T), [NewPartitionField("id")]),
        # To choose a default spec has no privilege of its own; what it takes includes adding one.
        on_table(T, P.TABLE_WRITE_PROPERTIES),
    ),
    Case(
        "set sort order",
        lambda w, who, _: set_sort_order(w.catalog, who, ShapeOf(T), [NewSortField("id")]),
        on_table(T, P.TABLE_ADD_SORT_ORDER, P.TABLE_SET_DEFAULT_SORT_ORDER),
    ),
    Case(
        "transaction",
        lambda w, who, _: commit_transaction(w.catalog, who, [TableChange(T, [], updates(SET))]),
        [*on_table(T, P.TABLE_WRITE_PROPERTIES), *on_namespace(NS, P.TABLE_CREATE)],
    ),
    Case(
        "creation in transaction",
        lambda w, who, change: commit_transaction(w.catalog, who, [change]),
        on_namespace(NS, P.TABLE_WRITE_PROPERTIES, P.TABLE_CREATE),
        staged,
    ),
    Case("drop table", lambda w, who, _: drop_table(w.catalog, who, T), on_table(T, P.TABLE_DROP)),
    Case(
        "purge table",
        lambda w, who, _: drop_table(w.catalog, who, T, is_purge_requested=True),
        on_table(T, P.TABLE_DROP, P.TABLE_WRITE_DATA),
    ),
    Case(
        "unregister",
        lambda w, who, _: unregister_table(w.catalog, who, T),
        on_table(T, P.TABLE_DROP, P.TABLE_READ_PROPERTIES),
    ),
    Case(
        "rename table",
        lambda w, who, _: rename_table(w.catalog, who, T, MOVED),
        [*on_table(T, P.TABLE_DROP), *on_namespace(OTHER, P.TABLE_CREATE)],
    ),
    Case(
        "report scan",
        lambda w, who, _: report_metrics(w.catalog, who, T, SCAN),
        on_table(T, P.TABLE_READ_DATA),
    ),
    Case(
        "report commit",
        lambda w, who, _: report_metrics(w.catalog, who, T, COMMIT),
        on_table(T, P.TABLE_WRITE_DATA),
    ),
    Case(
        "report unknown",
        lambda w, who, _: report_metrics(w.catalog, who, T, Report("x", b"{}")),
        on_table(T, P.TABLE_WRITE_DATA),
    ),
    Case(
        "list reports",
        lambda w, who, _: list_reports(w.catalog, who, T, ALL),
        on_table(T, P.TABLE_READ_PROPERTIES),
    ),
    Case(
        "table statistics",
        lambda w, who, _: table_statistics(w.catalog, who, T),
        on_table(T, P.TABLE_READ_PROPERTIES),
    ),
    Case("export", lambda w, who, _: export_table(w.catalog, who, T), on_table(T, P.TABLE_WRITE_PROPERTIES)),
    # views
    Case("list views", lambda w, who, _: list_views(w.catalog, who, NS, ALL), on_namespace(NS, P.VIEW_LIST)),
    Case(
        "create view",
        lambda w, who, _: create_view(w.catalog, who, CreateView(NEW, SCHEMA, VERSION)),
        on_namespace(NS, P.VIEW_CREATE),
    ),
    Case(
        "register view",
        lambda w, who, at: register_view(w.catalog, who, V, at),
        on_namespace(NS, P.VIEW_CREATE),
        given_up_view,
    ),
    Case("load view", lambda w, who, _: load_view(w.catalog, who, V), on_view(V, P.VIEW_READ_PROPERTIES)),
    Case("view exists", lambda w, who, _: view_exists(w.catalog, who, V), on_view(V, P.VIEW_LIST)),
    Case(
        "replace view",
        lambda w, who, _: replace_view(w.catalog, who, ViewChange(V, [], VIEW_SET)),
        on_view(V, P.VIEW_WRITE_PROPERTIES),
    ),
    Case("drop view", lambda w, who, _: drop_view(w.catalog, who, V), on_view(V, P.VIEW_DROP)),
    Case(
        "rename view",
        lambda w, who, _: rename_view(w.catalog, who, V, MOVED),
        [*on_view(V, P.VIEW_DROP), *on_namespace(OTHER, P.VIEW_CREATE)],
    ),
    # the whole catalog
    Case(
        "list dropped",
        lambda w, who, _: list_dropped(w.catalog, who, size=5),
        on_catalog(P.CATALOG_MANAGE_METADATA),
    ),
    Case(
        "restore",
        lambda w, who, drop: restore_dropped(w.catalog, who, drop),
        on_catalog(P.CATALOG_MANAGE_METADATA),
        dropped_table,
    ),
    Case(
        "load dropped",
        lambda w, who, drop: load_dropped(w.catalog, who, drop),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
        dropped_table,
    ),
    Case(
        "list tombstones",
        lambda w, who, _: list_tombstones(w.catalog, who, size=5),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
    ),
    Case(
        "load tombstone",
        lambda w, who, tombstone: load_tombstone(w.catalog, who, tombstone.entity_id),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
        entombed_table,
    ),
    Case(
        "load credentials of a tombstone",
        lambda w, who, tombstone: load_tombstone_credentials(w.catalog, who, tombstone.entity_id),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
        entombed_table,
    ),
    Case(
        "begin purging",
        lambda w, who, given: begin_purging(w.catalog, who, given.entity_id, given.task_id),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
        entombed_table,
    ),
    Case(
        "end purging",
        lambda w, who, given: end_purging(w.catalog, who, given.entity_id, given.task_id),
        on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA),
        entombed_table,
    ),
    Case(
        "changes",
        lambda w, who, _: read_changes(w.catalog, who, start="oldest"),
        on_catalog(P.CATALOG_MANAGE_METADATA),
    ),
    Case("sweep", lambda w, who, _: sweep_strays(w.catalog, who), on_catalog(P.CATALOG_MANAGE_CONTENT)),
    Case(
        "load catalog",
        lambda w, who, _: load_catalog(w.directory, who, "lake"),
        on_catalog(P.CATALOG_READ_PROPERTIES),
    ),
    Case(
        "update catalog",
        lambda w, who, _: update_catalog(w.directory, who, "lake", CatalogUpdate(set_properties={"k": "v"})),
        on_catalog(P.CATALOG_WRITE_PROPERTIES),
    ),
    Case(
        "check storage",
        lambda w, who, _: check_storage(w.directory, who, "lake"),
        on_catalog(P.CATALOG_WRITE_PROPERTIES),
    ),
    Case(
        "reconcile",
        lambda w, who, _: reconcile(
            Clients(FederationSettings(), Keyring, SystemClock(), opening=lambda _: MemoryRemote()),
            as_federated(w.catalog),
            who,
            is_mending=False,
        ),
        on_catalog(P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS),
    ),
    Case(
        "migrate",
        lambda w, who, _: migrate(
            w.directory,
            Clients(FederationSettings(), Keyring, SystemClock(), opening=lambda _: MemoryRemote()),
            as_federated(w.catalog),
            who,
            Step(name="survey"),
        ),
        on_catalog(P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS),
    ),
    # roles and grants
    Case(
        "create role",
        lambda w, who, _: create_catalog_role(w.catalog, who, "new", {}),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
    ),
    Case(
        "list roles",
        lambda w, who, _: list_catalog_roles(w.catalog, who),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
    ),
    Case(
        "load role",
        lambda w, who, _: load_catalog_role(w.catalog, who, "reader"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "update role",
        lambda w, who, _: update_catalog_role(w.catalog, who, "reader", 1, {"k": "v"}),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "delete role",
        lambda w, who, _: delete_catalog_role(w.catalog, who, "reader"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_granted_role,
    ),
    Case(
        "assign role",
        lambda w, who, _: assign_catalog_role(w.catalog, who, "reader", "ann"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "revoke role",
        lambda w, who, _: revoke_catalog_role(w.catalog, who, "reader", "ann"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "assignees",
        lambda w, who, _: list_assignees(w.catalog, who, "reader"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "roles of a principal role",
        lambda w, who, _: list_catalog_roles_of_principal_role(w.catalog, who, "ann"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
    ),
    Case(
        "list grants",
        lambda w, who, _: list_grants(w.catalog, who, "reader"),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "grant on a catalog",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", on_catalog(P.TABLE_LIST)[0]),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "grant on a namespace",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", on_namespace(NS, P.TABLE_LIST)[0]),
        on_namespace(NS, P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "grant on a table",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", GRANT),
        on_table(T, P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "grant on a view",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", on_view(V, P.VIEW_LIST)[0]),
        on_view(V, P.CATALOG_MANAGE_ACCESS),
        a_role,
    ),
    Case(
        "revoke on a table",
        lambda w, who, _: revoke_privilege(w.catalog, who, "reader", GRANT),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_granted_role,
    ),
]
