"""What maintenance would do now for the tables of a catalog, and why it does nothing else.

Must not break: this changes nothing, and says what the next round of the scheduler does (`upkeep.assess`).
"""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import choose_size
from cynosure.catalog.names import Namespace, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.system import SYSTEM
from cynosure.catalog.upkeep.assess import Assessed, assess
from cynosure.catalog.upkeep.survey import MOST_TABLES
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import State
from cynosure.persistence.index import encode_key
from cynosure.persistence.listing import Paging, list_page


class About(Struct, frozen=True):
    """Which tables are asked about. Empty: all."""

    namespace: Namespace = ()
    """With all below it."""
    name: str | None = None
    """One table of the namespace."""

    def check(self) -> None:
        """Refuse a name without a namespace."""
        if self.name is not None and not self.namespace:
            raise BadInput("A table is in a namespace", field="namespace", fix="Name it, too.")

    def includes(self, path: tuple[str, ...]) -> bool:
        """Whether a table, by its namespace's levels and its name, is asked about."""
        if self.name is not None:
            return path == (*self.namespace, self.name)
        return path[:-1][: len(self.namespace)] == self.namespace


class PlanPage(Struct, frozen=True):
    """Some of the plan."""

    entries: Sequence[Assessed]
    next_token: str | None
    is_complete: bool
    """Whether all tables with policies were looked at; more than some thousands are not."""


async def plan_maintenance(
    catalog: OpenCatalog,
    caller: Caller,
    paging: Paging,
    about: About | None = None,
    *,
    most: int = MOST_TABLES,
) -> PlanPage:
    """The plan as it is now, by tables. Of a table and policy that is gone since the page before, nothing.

    Of a part it is what it is of the whole; where that is too large (`most`), of the part alone.
    """
    about = about or About()
    about.check()
    await catalog.authorize(await catalog.read(), caller, ops.PLAN_MAINTENANCE, catalog.target())
    # What is read of tables to decide is the scheduler's own business; the caller may see what it decides.
    system = operator_caller(SYSTEM, catalog.realm)
    found = await assess(catalog, system, most=most)
    if found.next_key is not None and about.namespace:
        found = await assess(catalog, system, below=about.namespace, most=most)
    entries = {_key_of(each): each for each in found.entries if about.includes(_path_of(each))}
    is_complete = found.next_key is None
    if paging.token is None and paging.size is None:
        return PlanPage([entries[key] for key in sorted(entries)], None, is_complete)

    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return [(key, b"") for key in sorted(entries) if key >= start][:limit]

    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="mappings",
        prefix=encode_key("plan", about.name or "", *about.namespace),
        size=choose_size(catalog, paging),
        token=paging.token or None,
        scan=scan,
    )
    return PlanPage([entries[key] for key, _ in page.entries], page.next_token, is_complete)


def _path_of(each: Assessed) -> tuple[str, ...]:
    path = each.work.table.path
    return (*path.namespace, path.name)


def _key_of(each: Assessed) -> bytes:
    return table_key(each.work.table.path) + b"\0" + each.work.rule.task_type.encode()
