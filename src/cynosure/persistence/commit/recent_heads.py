"""Which earlier heads a reference remembers.

They are for disasters: an asynchronously replicated database may lose its newest rows, and an operator
then needs a head that is complete. The newest few alone would cover milliseconds on a busy catalog, so
of older ones the oldest of each age class is kept (under 1 s, 2 s, 4 s, 8 s ...): heads move from class
to class as they age, and sixteen classes reach back more than half a day.
"""

from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.ids import timestamp_us_of
from cynosure.persistence.spi import ObjId, Reference

_NEWEST = 8
"""How many of the newest heads are kept whatever their age."""


def add_recent(ref: Reference, most: int) -> tuple[ObjId, ...]:
    """The recent heads after `ref.head` is replaced, newest first, at most `most`."""
    heads = (ref.head, *ref.recent) if ref.head != NO_COMMIT else ref.recent
    newest_us = timestamp_us_of(ref.head)
    classes: dict[int, ObjId] = {}
    for head in reversed(heads[_NEWEST:]):
        age_s = max(0, newest_us - timestamp_us_of(head)) // 1_000_000
        classes.setdefault(age_s.bit_length(), head)
    return (*heads[:_NEWEST], *reversed(classes.values()))[:most]
