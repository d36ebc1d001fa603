"""Whole lists of names, as they were last answered, bounded by bytes.

Must not break: a list is only given out for the very commit it was read on.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from cynosure.persistence.spi import CatalogId, ObjId, RealmId

_MAX_BYTES: Final = 8 * 2**20
_OVERHEAD_BYTES: Final = 400
"""Of one entry: key, tuple and their places."""


class ListKey(NamedTuple):
    """What was listed."""

    realm: RealmId
    catalog: CatalogId
    prefix: bytes


class RecentLists:
    """The newest answer per list; the least recently used go first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._lists: OrderedDict[ListKey, tuple[ObjId, bytes]] = OrderedDict()

    def get(self, key: ListKey, commit_id: ObjId) -> bytes | None:
        """The list as it was at this commit, if it is remembered."""
        known = self._lists.get(key)
        if known is None or known[0] != commit_id:
            return None
        self._lists.move_to_end(key)
        return known[1]

    def remember(self, key: ListKey, commit_id: ObjId, body: bytes) -> None:
        """Keep a list, unless it is so large that it would drive out most others."""
        if 4 * len(body) > self._max_bytes:
            return
        replaced = self._lists.pop(key, None)
        if replaced is not None:
            self._size_bytes -= _weigh(replaced[1])
        self._lists[key] = (commit_id, body)
        self._size_bytes += _weigh(body)
        while self._size_bytes > self._max_bytes:
            _, (_, dropped) = self._lists.popitem(last=False)
            self._size_bytes -= _weigh(dropped)


def _weigh(body: bytes) -> int:
    return len(body) + _OVERHEAD_BYTES
