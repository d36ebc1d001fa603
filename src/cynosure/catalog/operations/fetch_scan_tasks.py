"""The files of one plan task.

Must not break: the answer is of the version that was planned, or there is none: files of another version
would be counted twice, or missed.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchPlan, NoSuchPlanTask
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.opening import Tasks, open_table
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.storage.errors import FileMissing


async def fetch_scan_tasks(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    plan_task: str,
    bound_form: BoundForm = BoundForm.TYPED,
) -> Tasks:
    """What a plan task stands for; `NoSuchPlanTask` for one that is another's, or gone."""
    opened = await open_table(catalog, caller, table)
    plan_id, part = opened.names.open_part(plan_task)
    try:
        plan = await opened.load_plan(plan_id, plan_task)
        _, viewer, planner = await opened.open_planner(plan, plan_task, bound_form)
        page = await planner.page(part)
    except (NoSuchPlan, FileMissing) as error:
        # Files go when their snapshot expires; the plan was of a state that is no more.
        raise NoSuchPlanTask(plan_task) from error
    told = [opened.names.seal_part(plan_id, each) for each in page.parts]
    return Tasks(page.tasks, page.delete_files, told, viewer.restrictions)
