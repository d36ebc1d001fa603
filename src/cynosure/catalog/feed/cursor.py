"""Where a reader of the feed stands: after a commit, or after some of its changes.

Must not break: a cursor is sealed with the store's key, names its catalog, and is good on every server for as
long as history is kept.
"""

import msgspec
from msgspec import Struct

from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput, BadPageToken, Expired
from cynosure.common.paging import PageTokens
from cynosure.persistence.spi import ObjId


class Cursor(Struct, frozen=True, array_like=True):
    """A place in the feed."""

    sequence: int
    """Everything up to this commit has been read."""
    commit: ObjId
    """That commit: after a disaster reset, the same number may be another one."""
    skip: int = 0
    """Changes of the *next* commit that have been read as well."""


def seal_cursor(catalog: OpenCatalog, cursor: Cursor) -> str:
    """The cursor as clients carry it."""
    return _tokens(catalog).seal(_scope(catalog), msgspec.msgpack.encode(cursor))


def open_cursor(catalog: OpenCatalog, text: str) -> Cursor:
    """A cursor that this store gave for this catalog."""
    try:
        return msgspec.msgpack.decode(_tokens(catalog).open(_scope(catalog), text), type=Cursor)
    except BadPageToken as error:
        raise BadInput(
            "The cursor is not one of this feed",
            field="from",
            fix="Pass the cursor exactly as it was answered, or begin with from=oldest or from=now.",
        ) from error
    except Expired as error:
        raise expired() from error


def expired() -> Expired:
    """The error for a place that history does not reach any more."""
    return Expired(
        "The cursor is older than the history that is kept",
        fix="Read the catalog's state again and follow the feed with from=now, or begin with from=oldest.",
    )


def _tokens(catalog: OpenCatalog) -> PageTokens:
    persistence = catalog.shared.persistence
    return PageTokens(persistence.info.page_key, persistence.clock, persistence.settings.gc.history_retention)


def _scope(catalog: OpenCatalog) -> str:
    return f"changes\x00{catalog.realm}\x00{catalog.entity.id}"
