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


class WholeList(NamedTuple):
    """All names of a list, encoded."""

    commit_id: ObjId
    """That they were read on."""
    names: int
    body: bytes


class RecentLists:
    """The newest answer per list; the least recently used go first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._lists: OrderedDict[ListKey, WholeList] = OrderedDict()

    def get(self, key: ListKey, commit_id: ObjId) -> WholeList | None:
        """The list as it was at this commit, if it is remembered."""
        known = self._lists.get(key)
        if known is None or known.commit_id != commit_id:
            return None
        self._lists.move_to_end(key)
        return known

    def remember(self, key: ListKey, whole: WholeList) -> None:
        """Keep a list, unless it is so large that it would drive out most others."""
        replaced = self._lists.pop(key, None)
        if replaced is not None:
            self._size_bytes -= _weigh(replaced)
        if 4 * len(whole.body) > self._max_bytes:
            return
        self._lists[key] = whole
        self._size_bytes += _weigh(whole)
        while self._size_bytes > self._max_bytes:
            _, dropped = self._lists.popitem(last=False)
            self._size_bytes -= _weigh(dropped)


def _weigh(whole: WholeList) -> int:
    return len(whole.body) + _OVERHEAD_BYTES
