"""Plan a scan of a table: the first files, and tasks that stand for the others.

Must not break: a plan whose parts are told is stored before they are, so that every server can answer them.
"""

import asyncio

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.access import give_plan_access, wants_paths
from cynosure.catalog.planning.opening import (
    PLAINLY,
    Asking,
    OpenTable,
    Planned,
    Tasks,
    make_planner,
    open_table,
)
from cynosure.catalog.planning.parts import EVERYTHING
from cynosure.catalog.planning.planner import Page, Planner
from cynosure.catalog.planning.request import ScanRequest
from cynosure.catalog.planning.stored import NOT_STORED, store_plan
from cynosure.catalog.planning.viewer import Viewer
from cynosure.catalog.recent_plans import PlanKey
from cynosure.common.errors import Unavailable
from cynosure.persistence.spi import ObjId


async def plan_scan(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    request: ScanRequest,
    asking: Asking = PLAINLY,
) -> Planned:
    """The plan of a scan, or word that it is being made.

    `BadInput` names what of the request does not fit the table.
    """
    opened = await open_table(catalog, caller, table)
    version = opened.current
    viewer = await opened.find_viewer(version, asking.bound_form)
    planner = await make_planner(catalog, version, request, viewer)
    plan_id = catalog.shared.persistence.ids.next()
    key = PlanKey(plan_id, viewer)
    page = await wait_for_page(key, planner, asking)
    access = None
    if page is not None:
        delegation = asking.delegation
        access = await give_plan_access(catalog, caller, table, version.state, delegation, viewer, page)
        if not page.parts and (access is None or not access.access.is_signed):
            # All of it is told: there is nothing to come back for.
            return complete(opened, NOT_STORED, viewer, page)._replace(access=access)
    await store_plan(
        catalog, caller, plan_id, table_id=version.state.id, state_id=version.state_id, request=request
    )
    catalog.shared.plans.keep_planner(key, planner)
    if page is None:
        return Planned(opened.names.seal_id(plan_id))
    return complete(opened, plan_id, viewer, page)._replace(access=access)


async def wait_for_page(key: PlanKey, planner: Planner, asking: Asking) -> Page | None:
    """The first page of a plan, if it is there in time; otherwise it is made in the background.

    Errors of what is there in time are raised.
    """
    catalog = planner.catalog
    plans = catalog.shared.plans
    work = plans.find_running(key)
    if work is None:
        with_paths = wants_paths(catalog, asking.delegation)
        work = asyncio.ensure_future(planner.page(EVERYTHING, with_paths=with_paths))
    try:
        await asyncio.wait({work}, timeout=catalog.shared.settings.planning.wait.total_seconds())
    except asyncio.CancelledError:
        if plans.find_running(key) is not work:
            work.cancel()
        raise
    if work.cancelled():
        raise Unavailable("The plan was ended while it was made", fix="Ask for it again, or plan again.")
    if work.done():
        page: Page = work.result()
        return page
    if plans.find_running(key) is not work:
        plans.keep_running(key, work)
    return None


def complete(opened: OpenTable, plan_id: ObjId, viewer: Viewer, page: Page) -> Planned:
    """A page as its caller is told it."""
    names = opened.names
    tasks = [names.seal_part(plan_id, part) for part in page.parts]
    told = Tasks(page.tasks, page.delete_files, tasks, viewer.restrictions)
    return Planned(names.seal_id(plan_id), told)
