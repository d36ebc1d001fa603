"""What installed packages offer us: entry points.

Looking reads the metadata of every installed package, which takes longer than opening a store, so it is done
once for each path that Python imports from.
"""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points


def list_offers(group: str) -> tuple[EntryPoint, ...]:
    """The entries of a group. A development install can list the same entry twice; here it is one."""
    return _list_offers(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _list_offers(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple({(entry.name, entry.value): entry for entry in entry_points(group=group)}.values())
