"""Where a reader of events stands, as a token that outlives restarts.

Must not break: a cursor is sealed with the store's key, names its realm, and is good on every server for as
long as the events behind it are kept.
"""

from datetime import timedelta

from cynosure.common.errors import BadInput, BadPageToken, Expired
from cynosure.common.paging import PageTokens
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import RealmId


class EventCursors:
    """Seals and opens the cursors of one store."""

    def __init__(self, persistence: Persistence, retention: timedelta) -> None:
        self._tokens = PageTokens(persistence.info.page_key, persistence.clock, retention)

    def seal(self, realm: RealmId, number: int) -> str:
        """The place after the event of this number."""
        return self._tokens.seal(_scope(realm), number.to_bytes(8, "big"))

    def open(self, realm: RealmId, text: str) -> int:
        """The number of a cursor that this store gave for this realm."""
        try:
            return int.from_bytes(self._tokens.open(_scope(realm), text), "big")
        except BadPageToken as error:
            raise BadInput(
                "The cursor is not one of these events",
                field="cursor",
                fix="Pass the cursor exactly as it was answered, or none to begin with the oldest event.",
            ) from error
        except Expired as error:
            raise expired() from error


def expired() -> Expired:
    """The error for a place that the events do not reach any more."""
    return Expired(
        "The cursor is older than the events that are kept",
        fix="Read again without a cursor; what lies between is gone (auth.audit.retention).",
    )


def _scope(realm: RealmId) -> str:
    return f"events\x00{realm}"
