"""A statement once more on the isolated leaf, after the storage refused what the native one had.

Iceberg's reader keeps to the credentials that it began with. Where they ended before the first row, the same
driver reads the same fragments by scans that get newer ones.

A maintainer must not break: it begins with new credentials, because the old ones may be why it is asked.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import structs

from cynosure.query.engine import EngineQuery, OnFragment, Relation
from cynosure.query.scan_task import ScanTask

if TYPE_CHECKING:
    from cynosure.query.engine import Results

Execute = Callable[[EngineQuery, OnFragment], Awaitable["Results"]]


class RenewingEngine:
    """See `engine.Engine`: that of another, whose `close` ends it too."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    @property
    def name(self) -> str:
        """Of the engine and its leaf."""
        return "spark-isolated"

    def find_reason_against(self, query: EngineQuery) -> str | None:
        """What ran natively runs isolated."""
        return None

    async def execute(self, query: EngineQuery, on_fragment: OnFragment) -> "Results":
        """See `engine.Engine`."""
        relations = tuple([await renew(each) for each in query.relations])
        return await self._execute(structs.replace(query, relations=relations), on_fragment)

    async def close(self) -> None:
        """Nothing of its own."""


async def renew(relation: Relation) -> Relation:
    """The relation with new credentials in its fragments."""
    if relation.renew is None or not any(isinstance(each, ScanTask) for each in relation.fragments):
        return relation
    newer = await relation.renew()
    tasks = tuple(
        structs.replace(each, credentials=newer) for each in relation.fragments if isinstance(each, ScanTask)
    )
    return structs.replace(relation, fragments=tasks)
