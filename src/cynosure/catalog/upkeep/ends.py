"""What became of tasks under way, as the executor tells.

Must not break: only an answer that there is no such task makes one lost; no answer leaves it under way.
"""

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.catalog.upkeep.runs import Known, Run, Upkeep, end_of, with_end
from cynosure.common.errors import OutcomeUnknown, Unavailable


async def find_ends(catalog: OpenCatalog, executor: TaskExecutor, known: Known) -> list[tuple[Upkeep, Run]]:
    """The tasks that have ended since they were last looked at, with their ends."""
    now_us = catalog.shared.persistence.clock.now_us()
    ends: list[tuple[Upkeep, Run]] = []
    for upkeep in known.values():
        for run in upkeep.runs:
            if not run.is_under_way:
                continue
            ended = end_of(run, await executor.find(catalog.realm, run.task_id), now_us=now_us)
            if ended is not None:
                ends.append((upkeep, ended))
    return ends


async def with_ends(catalog: OpenCatalog, known: Known) -> Known:
    """What is known, with the ends of tasks that nobody has recorded yet."""
    executor = catalog.shared.executor
    if executor is None:
        return known
    try:
        ends = await find_ends(catalog, executor, known)
    except (Unavailable, OutcomeUnknown):
        # People ask also when the service is away: what was under way still is.
        return known
    after = dict(known)
    for upkeep, ended in ends:
        key = (upkeep.table_id, upkeep.task_type)
        after[key] = with_end(after[key], ended)
    return after
