"""From a table's name to a plan of it: every right is looked up now, for each single request.

A maintainer must not break: the version that a plan reads may be old, but whether the caller may plan, which
table has the name, and what of it they may see is answered by the current state.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchPlan, NoSuchTable
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.access import PlanAccess
from cynosure.catalog.planning.planner import Planner
from cynosure.catalog.planning.request import ScanRequest, read_scan
from cynosure.catalog.planning.stored import PlanNames, ScanPlan, find_plan, is_ended, read_request
from cynosure.catalog.planning.viewer import Viewer, find_viewer
from cynosure.catalog.recent_plans import PlanKey
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.targets import TableTarget
from cynosure.common.errors import CynosureError, MissingObject
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.persistence.commit import State
from cynosure.persistence.spi import ObjId


class Asking(NamedTuple):
    """What a client wants besides the files."""

    delegation: Delegation = NOT_ASKED
    bound_form: BoundForm = BoundForm.TYPED


_LONG_FILTER_BYTES: Final = 8 * 1024
PLAINLY: Final = Asking()
"""Nothing."""


class Tasks(NamedTuple):
    """Files to read, as JSON, and parts of the plan to ask for."""

    files: Sequence[bytes]
    delete_files: Sequence[bytes]
    plan_tasks: Sequence[str]
    restrictions: bytes | None = None
    """What the reader has to apply, as JSON."""


class Planned(NamedTuple):
    """What is answered about a plan. With neither tasks nor an error it is still being made."""

    plan_id: str
    tasks: Tasks | None = None
    access: PlanAccess | None = None
    """How its files are reached; None for somebody who gets no access, or did not ask."""
    error: CynosureError | None = None
    is_cancelled: bool = False


class OpenTable:
    """A table as a caller who may plan scans of it finds it now."""

    def __init__(
        self, catalog: OpenCatalog, caller: Caller, view: State, target: TableTarget, current: ManagedTable
    ) -> None:
        self.catalog = catalog
        self.caller = caller
        self.current = current
        self.names = PlanNames(catalog, caller, current.state.id)
        self.view = view
        self.target = target

    async def find_viewer(self, table: ManagedTable, bound_form: BoundForm) -> Viewer:
        """How the caller sees a version of the table."""
        return await find_viewer(self.catalog, self.caller, self.view, self.target, table, bound_form)

    async def load_plan(self, plan_id: ObjId, text: str) -> ScanPlan:
        """A stored plan that is not cancelled; `NoSuchPlan` otherwise."""
        plan = await find_plan(self.catalog, plan_id)
        if plan is None or await is_ended(self.catalog, plan_id):
            raise NoSuchPlan(text)
        return plan

    async def open_planner(
        self, plan: ScanPlan, text: str, bound_form: BoundForm
    ) -> tuple[PlanKey, Viewer, Planner]:
        """What makes the pages of a stored plan.

        `NoSuchPlan` when its version is gone, or when the caller sees it differently from the table as it is.
        """
        catalog = self.catalog
        try:
            table = await load_table_at(self.view, plan.state_id, catalog.shared.tables)
        except MissingObject as error:
            raise NoSuchPlan(text) from error
        viewer = await self.find_viewer(table, bound_form)
        # What restrictions mean for an older version may be less: its columns may have had other names.
        if viewer != await self.find_viewer(self.current, bound_form):
            raise NoSuchPlan(text)
        key = PlanKey(plan.id, viewer)
        planner: Planner | None = catalog.shared.plans.find_planner(key)
        # A catalog is opened again when it is changed: where files may be is as it says now.
        if planner is None or planner.catalog is not catalog:
            planner = await make_planner(catalog, table, read_request(plan), viewer)
            catalog.shared.plans.keep_planner(key, planner)
        return key, viewer, planner


async def open_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> OpenTable:
    """The table of this name, if the caller may plan scans of it."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    target = catalog.found_table(table, ref)
    await catalog.authorize(view, caller, ops.PLAN_SCAN, target)
    if ref is None:
        raise NoSuchTable(str(table))
    if ref.type == POINTER.name:
        current = await import_pointer(catalog, caller, table)
    else:
        current = await load_table_at(view, ref.id, catalog.shared.tables)
    return OpenTable(catalog, caller, view, target, current)


async def make_planner(
    catalog: OpenCatalog, table: ManagedTable, request: ScanRequest, viewer: Viewer
) -> Planner:
    """What makes the pages of a scan; `BadInput` names what does not fit the table."""

    def make() -> Planner:
        return Planner(catalog, table, read_scan(request, table.metadata), viewer)

    if len(bytes(request.filter)) < _LONG_FILTER_BYTES:
        return make()
    # Others have their turn while it is read.
    return await asyncio.get_running_loop().run_in_executor(catalog.shared.plans.threads, make)
