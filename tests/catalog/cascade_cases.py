"""Cascades and tasks, and exactly what they need: see `access_cases.py`."""

from cynosure.catalog.cascading.drop_namespace import drop_namespace_cascade
from cynosure.catalog.cascading.explain import plan_namespace_cascade
from cynosure.catalog.operations.cancel_task import cancel_task
from cynosure.catalog.operations.list_tasks import list_tasks
from cynosure.catalog.operations.load_task import load_task, load_task_history
from cynosure.catalog.operations.retry_task import retry_task
from cynosure.catalog.task_executor import TaskQuery
from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_access import P, on_catalog, on_namespace
from tests.catalog.access_cases import Case
from tests.catalog.world import NS, Lake


async def a_task(lake: Lake) -> str:
    executor = ScriptedExecutor(lake.directory.shared.persistence.clock)
    lake.directory.shared.use_executor(executor)
    table = TableIdentity("7", "lake", NS, "t")
    return (await executor.purge_table(TaskOrder(TaskType.TABLE_PURGE, "default", "one", table))).task_id


async def a_failed_task(lake: Lake) -> str:
    task_id = await a_task(lake)
    executor = lake.directory.shared.executor
    assert isinstance(executor, ScriptedExecutor)
    return (await executor.end(task_id, TaskStatus.FAILURE)).task_id


CASCADE_CASES = [
    Case(
        "drop namespace cascade",
        lambda w, who, _: drop_namespace_cascade(w.catalog, who, NS),
        on_namespace(NS, P.NAMESPACE_DROP, P.TABLE_DROP, P.VIEW_DROP),
    ),
    Case(
        "plan namespace cascade",
        lambda w, who, _: plan_namespace_cascade(w.catalog, who, NS, is_purging=True),
        on_namespace(NS, P.NAMESPACE_DROP),
    ),
]
TASK_CASES = [
    Case(
        "list tasks",
        lambda w, who, _: list_tasks(w.directory, who, TaskQuery(catalog="lake")),
        on_catalog(P.CATALOG_MANAGE_CONTENT),
        a_task,
    ),
    Case(
        "load task",
        lambda w, who, task: load_task(w.directory, who, task),
        on_catalog(P.CATALOG_MANAGE_CONTENT),
        a_task,
    ),
    Case(
        "load task history",
        lambda w, who, task: load_task_history(w.directory, who, task),
        on_catalog(P.CATALOG_MANAGE_CONTENT),
        a_task,
    ),
    Case(
        "retry task",
        lambda w, who, task: retry_task(w.directory, who, task),
        on_catalog(P.CATALOG_MANAGE_CONTENT),
        a_failed_task,
    ),
    Case(
        "cancel task",
        lambda w, who, task: cancel_task(w.directory, who, task),
        on_catalog(P.CATALOG_MANAGE_CONTENT),
        a_task,
    ),
]
