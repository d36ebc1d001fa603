"""Ask again for a plan that was not ready: it is being made here, or made again from what is stored.

Must not break: what was planned under other rights than the caller has by now is planned again.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchPlan
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.plan_scan import complete, wait_for_page
from cynosure.catalog.planning.access import give_plan_access
from cynosure.catalog.planning.opening import PLAINLY, Asking, Planned, open_table
from cynosure.catalog.planning.stored import find_plan, is_ended
from cynosure.common.errors import CynosureError, Unavailable


async def fetch_plan(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    plan_id: str,
    asking: Asking = PLAINLY,
) -> Planned:
    """The plan of this id, as far as it is made; `NoSuchPlan` when the caller has none of this table."""
    opened = await open_table(catalog, caller, table)
    stored_id = opened.names.open_id(plan_id)
    plan = await find_plan(catalog, stored_id)
    if plan is None:
        raise NoSuchPlan(plan_id)
    if await is_ended(catalog, stored_id):
        return Planned(plan_id, is_cancelled=True)
    key, viewer, planner = await opened.open_planner(plan, plan_id, asking.bound_form)
    try:
        page = await wait_for_page(key, planner, asking)
    except Unavailable:
        # For a moment: the plan itself is as good as before.
        raise
    except CynosureError as error:
        return Planned(plan_id, error=error)
    if page is None:
        return Planned(plan_id)
    state = opened.current.state
    access = await give_plan_access(catalog, caller, table, state, asking.delegation, viewer, page)
    return complete(opened, stored_id, viewer, page)._replace(plan_id=plan_id, access=access)
