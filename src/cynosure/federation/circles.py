"""Catalogs that stand for each other in a circle: a request that comes back to where it was is refused.

One of ours may have another server of this kind as its remote, whose catalog stands for ours again. Then
each would wait for the other, and hold turns of both, until time is up. So a request to a remote says through
which catalogs it came, and whoever finds itself among them says so at once.

Must not break: what a client says here can only have its own request refused. Nobody is answered together
with somebody who came another way.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.errors import InCircle

HEADER: Final = "x-cynosure-via"
_MOST: Final = 16
"""Catalogs behind each other. A longer way is a circle through others, who leave us out of it."""
_MARKS: Final = re.compile(r"[0-9a-f]{24}(,[0-9a-f]{24}){0,63}")

_passed: ContextVar[tuple[str, ...]] = ContextVar("cynosure_federation_passed", default=())


def passed() -> tuple[str, ...]:
    """Marks of the catalogs through which the current request came."""
    return _passed.get()


@contextmanager
def came_through(header: str) -> Iterator[None]:
    """Do what a request asks that says so. What cannot be read counts as nothing."""
    token = _passed.set(tuple(header.split(",")) if _MARKS.fullmatch(header) else ())
    try:
        yield
    finally:
        _passed.reset(token)


def mark_of(catalog: OpenCatalog) -> str:
    """What tells this catalog from all others, and nothing of it."""
    entity = catalog.entity
    told = "\0".join((catalog.realm, str(entity.id), str(entity.created_us), entity.base_location))
    return hashlib.sha256(told.encode()).hexdigest()[:24]


def require_no_circle(catalog: OpenCatalog) -> None:
    """Refuse a request that came through this very catalog, or through too many."""
    came = _passed.get()
    if came and (len(came) >= _MOST or mark_of(catalog) in came):
        raise InCircle(catalog.entity.name)


def pass_on(mark: str) -> str:
    """The header of a request to the remote of the catalog that has this mark."""
    return ",".join((*_passed.get(), mark))
