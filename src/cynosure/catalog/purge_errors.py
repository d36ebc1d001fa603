"""What is refused or goes wrong about drops with purge, extending the one tree.

Must not break: what a requester must do is in `fix`. It is told for every status, details are not.
"""

from cynosure.common.errors import Conflict, CynosureError, Forbidden, Named, NotFound, Unavailable


class NoSuchTombstone(Named, NotFound):
    """No table of this id is to be purged."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Tombstone does not exist",
            fix="The table was restored, or its last file is gone and with it the tombstone.",
            name=name,
        )


class PurgeOff(Forbidden):
    """The catalog does not purge."""

    def __init__(self, catalog: str, *, property: str) -> None:
        super().__init__(
            "This catalog does not let tables be dropped with their files",
            fix=f"Drop the table without a purge, or set the catalog's property {property} to true.",
            catalog=catalog,
        )


class PurgeConflict(Conflict):
    """What is asked of a tombstone does not fit how far its purge is."""


class LocationShared(PurgeConflict):
    """A place of the table is not its own, so nothing there may be deleted."""

    code = "LOCATION_SHARED"


class PurgeLifted(Conflict):
    """The request was made before, and what it did has been taken back."""

    def __init__(self, table: str, *, reason: str) -> None:
        super().__init__(
            "The table was not purged, and is there again",
            # Our own client is told this, too: it repeats a request that was answered 502.
            fix=(
                f"{_sentence(reason)} Drop it again once that is solved,"
                " with a new Idempotency-Key if you gave one."
            ),
            table=table,
        )


class PurgeNotOrdered(Unavailable):
    """Whoever purges tables could not be asked to. The table is as it was."""

    def __init__(self) -> None:
        super().__init__(
            "The table was not dropped: the service that purges tables does not answer",
            fix="Try again later; the table and its files are as they were.",
        )


class PurgeFailed(CynosureError):
    """The purge ended before it began. No file is gone."""

    def __init__(self, reason: str, *, is_back: bool = True) -> None:
        super().__init__(
            "The table was not purged" if is_back else "The table was not purged, and could not be put back",
            fix=(
                f"{_sentence(reason)} The table is as it was: drop it again once that is solved."
                if is_back
                else f"{_sentence(reason)} No file is gone; restore it with 'cynosure tables restore'."
            ),
        )


class PurgeIncomplete(CynosureError):
    """The purge cannot go on by itself, and some files may be gone already."""

    def __init__(self, task_id: str, reason: str) -> None:
        super().__init__(
            "The purge failed after it had begun: files of the table may be gone",
            fix=(
                f"{_sentence(reason)} Repeat the request once that is solved,"
                f" or run 'cynosure tasks retry {task_id}'."
            ),
        )


class PurgePending(CynosureError):
    """The purge takes longer than its requester waits, or nobody knows how far it is. It goes on."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            "The table is being purged, and its last file is not gone yet",
            fix=f"Repeat the request to wait on, or run 'cynosure tasks watch {task_id}'.",
        )


def _sentence(text: str) -> str:
    text = text.strip() or "No reason was given"
    return text if text.endswith(".") else f"{text}."
