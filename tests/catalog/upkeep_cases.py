"""Maintenance, and exactly what it needs: see `access_cases.py`."""

from typing import Any

from cynosure.auth.caller import Caller
from cynosure.catalog.listing import Paging
from cynosure.catalog.upkeep.list_maintenance import list_maintenance
from cynosure.catalog.upkeep.order_maintenance import Wanted, order_maintenance
from cynosure.catalog.upkeep.plan_maintenance import plan_maintenance
from cynosure.common.delegated.record import TaskDetails
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_access import P, on_catalog, on_table
from tests.catalog.access_cases import Case
from tests.catalog.tables import T
from tests.catalog.world import Lake


async def a_service(lake: Lake) -> None:
    lake.directory.shared.use_executor(ScriptedExecutor(lake.directory.shared.persistence.clock))


async def order(lake: Lake, who: Caller, _: Any) -> TaskDetails:
    return await order_maintenance(lake.catalog, who, T, Wanted("DATA_COMPACTION"))


UPKEEP_CASES = [
    Case(
        "plan maintenance",
        lambda w, who, _: plan_maintenance(w.catalog, who, Paging()),
        on_catalog(P.TABLE_READ_PROPERTIES),
    ),
    Case(
        "list maintenance",
        lambda w, who, _: list_maintenance(w.catalog, who, Paging()),
        on_catalog(P.TABLE_READ_PROPERTIES),
    ),
    Case(
        "order maintenance",
        order,
        on_table(T, P.TABLE_WRITE_DATA),
        a_service,
    ),
]
