"""What an error of PostgreSQL or its driver means: refused, unknown, misconfigured or damaged.

A maintainer must not break: an error of a writing call is `OutcomeUnknown` unless the server itself said
that the statement failed. A broken connection says nothing, whatever the driver calls it.
"""

import asyncpg

from cynosure.common.errors import CynosureError, Damaged, Misconfigured, OutcomeUnknown, Unavailable

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # includes TimeoutError
)
"""Everything that a call of the driver raises, other than cancellation."""

# The server reports these for a statement that it gave up, so nothing of it remains. Classes are the first
# two characters of the code. Not here: connections (08), an operator's or crash's end (57), system and
# internal errors (58, XX), which can follow a commit that is already durable.
_FAILED_FOR_SURE = frozenset({"0A", "22", "23", "25", "26", "28", "3D", "3F", "40", "42", "53", "54", "55"})
_COMPLETION_UNKNOWN = "40003"

_NOT_SET_UP = frozenset({"42P01", "3F000"})
_REFUSALS = {
    "40": ("Other work in the database came in the way", ""),
    "53100": ("The disk of the database server is full", "Free space on the database server."),
    "53": ("The database server lacks a resource", "Look into the log of the database server."),
    "55P03": ("Another session keeps a lock for too long", "End the session that is idle in a transaction."),
    "25006": ("The database server is read-only", "Name the primary server in the URL, not a standby."),
    "57": ("The database server ended the session", "Wait until the server is up again."),
}


def is_lost_connection(error: BaseException) -> bool:
    """Whether the connection broke, as after a restart of the server; a read may then try another."""
    if isinstance(error, TimeoutError):
        return False
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        return code.startswith(("08", "57P"))
    # The last of these is how the driver takes a statement while the server's good-bye is still unread.
    return isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError)


def translate_read(error: BaseException, place: str) -> CynosureError:
    """An error of a call that cannot have applied anything."""
    if isinstance(error, TimeoutError):
        return Unavailable(
            "The database server did not answer in time",
            fix="Look for long work in the database, or raise command_timeout_s.",
            place=place,
        )
    code = getattr(error, "sqlstate", None) or ""
    if code in _NOT_SET_UP:
        return never_set_up(place)
    if code == "42501":
        return Misconfigured(
            "The database user lacks a right",
            fix="Make it the owner of the schema, or grant it all rights on the schema and its tables.",
            place=place,
        )
    if code in ("XX001", "XX002"):
        return Damaged(
            "The database server found damaged data",
            fix="Stop writing and restore the database from a backup.",
            place=place,
            sqlstate=code,
        )
    message, fix = _REFUSALS.get(code) or _REFUSALS.get(code[:2]) or ("The database did not answer", "")
    return Unavailable(message, fix=fix, place=place, cause=type(error).__name__, sqlstate=code)


def translate_write(error: BaseException, place: str) -> CynosureError:
    """An error of a call that writes, after its statement may have left this process."""
    code = getattr(error, "sqlstate", None) or ""
    if code[:2] in _FAILED_FOR_SURE and code != _COMPLETION_UNKNOWN:
        return translate_read(error, place)
    return OutcomeUnknown(
        "The database did not say whether it applied the change",
        place=place,
        cause=type(error).__name__,
        sqlstate=code,
    )


def translate_connect(error: BaseException, place: str) -> CynosureError:
    """An error while getting a connection: nothing was sent."""
    code = getattr(error, "sqlstate", None) or ""
    if code.startswith("28"):
        return Misconfigured(
            "The database server refused this user or password",
            fix="Check user and password in the URL, and pg_hba.conf on the server.",
            place=place,
        )
    if code == "3D000":
        return Misconfigured(
            "The database does not exist", fix="Create it with createdb, or name another one.", place=place
        )
    if code == "53300":
        return Unavailable(
            "The database server has no free connection",
            fix="Lower the option connections, or raise max_connections on the server.",
            place=place,
        )
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return Unavailable(
            "The database server is a read-only standby",
            fix="Name the primary server in the URL.",
            place=place,
        )
    if isinstance(error, ValueError):
        return Misconfigured(
            "The driver cannot use the database URL", fix="Check the options of the URL.", place=place
        )
    if code and not code.startswith(("08", "57")):
        return translate_read(error, place)
    return Unavailable(
        "The database server gave no connection in time" if isinstance(error, TimeoutError)
        else "The database server cannot be reached",
        fix="Check that it runs and that host and port are right.",
        place=place,
        cause=type(error).__name__,
    )  # fmt: skip


def never_set_up(place: str) -> Misconfigured:
    """The schema or its tables are not there."""
    return Misconfigured(
        "The store was never set up",
        fix="Run `cynosure store init`, or name another schema or database.",
        place=place,
    )
