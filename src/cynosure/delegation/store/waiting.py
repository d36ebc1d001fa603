"""What both stores have in common: from when on a task can be taken, how kept words and page tokens are read.

One time orders all tasks that have not ended (*ready*): of a new one when it was submitted, of one that waits
when it is due, of a leased one when its lease is over. Whoever leases takes the smallest that has passed.

A maintainer must not break: both stores order by this, so both answer alike.
"""

import binascii
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import BadPageToken, NewerFormat
from cynosure.delegation.task_record import LAST_US, TaskRecord

RELEASED_US: Final = 0
"""Ready time of a task whose worker is known to be dead: before all others."""


def read_words(task_type: str, status: str) -> tuple[TaskType, TaskStatus]:
    """Kind and state as they are kept; `NewerFormat` for one that only a newer version knows."""
    try:
        return TaskType(task_type), TaskStatus(status)
    except ValueError as error:
        raise NewerFormat(
            "A task was written by a newer version",
            fix="Start that version; this one does not know its kind or state.",
            task_type=task_type,
            status=status,
        ) from error


def is_task_id(text: str) -> bool:
    """Whether a task can have this id; strangers may ask for anything."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def ready_of(record: TaskRecord, lease_until_us: int) -> int | None:
    """From when on it can be taken; `None` when it has ended. `lease_until_us` is of leased ones only."""
    if record.status.is_terminal:
        return None
    if record.status.is_leased:
        return lease_until_us
    return record.next_scheduled_run_us or record.last_status_change_us


def found_as(before: TaskStatus) -> str:
    """How `Leased.found` names it."""
    if before.is_leased:
        return "lost"
    return "retry" if before is TaskStatus.RETRY_SCHEDULED else "new"


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A place in the list of tasks, behind this one."""

    created_us: int
    task_id: str

    def seal(self) -> str:
        """As a page token. Not a secret, and no right comes with it."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def open(cls, token: str) -> "Place":
        """Read a page token; `BadPageToken` when it is none of ours."""
        try:
            padded = token.encode("ascii") + b"=" * (-len(token) % 4)
            place = msgspec.json.decode(urlsafe_b64decode(padded), type=cls)
        except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
            raise _bad_token() from error
        if not 0 <= place.created_us <= LAST_US or not is_task_id(place.task_id):
            raise _bad_token()
        return place


def _bad_token() -> BadPageToken:
    return BadPageToken(
        "The page token is not one of this listing",
        field="page_token",
        fix="Pass the token exactly as it was returned, or list again without one.",
    )
