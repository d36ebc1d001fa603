"""Tables in memory, by the id of their state: immutable, so never out of date; bounded by bytes.

Must not break: only the id decides. What a name points to is asked of the state for every request.
"""

from collections import OrderedDict

from cynosure.catalog.managed.table import ManagedTable
from cynosure.persistence.spi import ObjId


class RecentTables:
    """The tables used last, of all catalogs of a process."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._tables: OrderedDict[ObjId, tuple[ManagedTable, int]] = OrderedDict()
        self.weight_bytes = 0

    def get(self, state_id: ObjId) -> ManagedTable | None:
        """The table at this version, if it is in memory."""
        found = self._tables.get(state_id)
        if found is None:
            return None
        self._tables.move_to_end(state_id)
        return found[0]

    def put(self, table: ManagedTable) -> None:
        """Keep a table; the ones used longest ago make room."""
        weight = table.weigh()
        known = self._tables.pop(table.state_id, None)
        if known is not None:
            self.weight_bytes -= known[1]
        self._tables[table.state_id] = (table, weight)
        self.weight_bytes += weight
        while self.weight_bytes > self._limit_bytes and len(self._tables) > 1:
            _, (_, gone) = self._tables.popitem(last=False)
            self.weight_bytes -= gone

    def clear(self) -> None:
        """Forget all tables."""
        self._tables.clear()
        self.weight_bytes = 0
