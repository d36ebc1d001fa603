"""Heads that permissions rest on, put together.

Must not break: two decisions of one request that saw different heads of the same reference are not made into
one that saw the newer: the request is prepared again.
"""

from collections.abc import Mapping
from typing import Final

from cynosure.persistence.spi import ObjId, RefKey

Guards = Mapping[RefKey, ObjId]
"""For `Prepared.guards`."""

_NEVER: Final = ObjId(-1)
"""No head is this."""


def join_guards(*guards: Guards) -> Guards:
    """What rests on all of these. Where they disagree, a head that cannot be: then it is not committed."""
    if len(guards) == 1:
        return guards[0]
    joined: dict[RefKey, ObjId] = {}
    for each in guards:
        for key, head in each.items():
            if joined.setdefault(key, head) != head:
                joined[key] = _NEVER
    return joined
