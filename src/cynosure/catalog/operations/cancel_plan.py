"""Cancel a plan: it is unknown from then on, on every server.

Must not break: a plan that was answered completely is nothing that could be cancelled, but its id was given;
so that is no error.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.opening import open_table
from cynosure.catalog.planning.stored import NOT_STORED, end_plan


async def cancel_plan(catalog: OpenCatalog, caller: Caller, table: Identifier, plan_id: str) -> None:
    """End a plan; `NoSuchPlan` when the caller has none of this id and table, or has cancelled it before."""
    opened = await open_table(catalog, caller, table)
    stored_id = opened.names.open_id(plan_id)
    if stored_id == NOT_STORED:
        return
    await opened.load_plan(stored_id, plan_id)
    await end_plan(catalog, stored_id)
    catalog.shared.plans.forget(stored_id)
