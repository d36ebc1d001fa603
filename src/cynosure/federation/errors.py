"""What goes wrong with remotes, as callers are told it: never in the remote's own words."""

from cynosure.catalog.errors import NoSuchTable
from cynosure.common.errors import Conflict, CynosureError, Forbidden, Named, Unavailable
from cynosure.storage.errors import FileMissing


class RemoteUnavailable(Named, Unavailable):
    """The remote does not answer, is left alone for a while, or too many requests wait for it. 503.

    `status` is what the remote answered, if it did: a number of HTTP's, or a word of its own.
    """

    def __init__(self, catalog: str, *, reason: str, status: int | None = None) -> None:
        super().__init__(
            "The remote catalog does not answer",
            name=catalog,
            reason=reason,
            fix="Try again. Whoever administers this catalog is told why by 'cynosure federation status'.",
        )
        if status is not None:
            self.details["status"] = status


class RemoteBusy(RemoteUnavailable):
    """Too many requests wait for the remote, most of them of whoever is told this. Nothing was sent. 503."""


class FederationOff(RemoteUnavailable):
    """The operator has switched requests to remotes off. Nothing was sent. 503."""

    def __init__(self, catalog: str) -> None:
        super().__init__(catalog, reason="federation.enabled is false")
        self.message = "This server does not ask remote catalogs"
        self.fix = "Ask whoever runs it to set federation.enabled."


class RemoteRefused(Named, CynosureError):
    """The remote does not accept our credentials, or refuses us this. 502: the caller cannot mend it."""

    def __init__(self, catalog: str, *, status: int, reason: str = "") -> None:
        super().__init__(
            "The remote catalog refused the request",
            name=catalog,
            status=status,
            fix="Ask whoever administers this catalog to check its connection.",
        )
        if reason:
            self.details["reason"] = reason


class RemoteMisbehaved(Named, CynosureError):
    """The remote answered what cannot be believed: too large, no JSON, another host, another table. 502."""

    def __init__(self, catalog: str, *, problem: str) -> None:
        super().__init__(
            "The remote catalog answered what cannot be used",
            name=catalog,
            problem=problem,
            fix="Ask whoever administers this catalog to check its connection.",
        )


class InCircle(Named, CynosureError):
    """The remote, or one behind it, stands for the catalog that asks it. 508: nothing was done."""

    def __init__(self, catalog: str) -> None:
        super().__init__(
            "The catalog stands for another one that stands for itself",
            name=catalog,
            fix="Ask whoever administers these catalogs to connect one of them to where the tables are.",
        )


class RemoteFileMissing(FileMissing):
    """The remote has a table whose metadata file is gone. 404, and nothing is forgotten for it."""

    def __init__(self, table: str) -> None:
        super().__init__("The metadata file of the remote's table is missing", table=table)
        self.location: str | None = None
        """Which file, if it is the one that was last seen here. Not for everybody who may ask."""


class NamedFileMissing(Named, FileMissing):
    """The same, for those who may know where the table's files are. In the words of Iceberg's own server."""

    def __init__(self, location: str) -> None:
        super().__init__("Failed to open input stream for file", name=location)


class RemoteConflict(Conflict):
    """The remote has another version by now, or a requirement does not hold there. 409."""


class NotIceberg(NoSuchTable):
    """The remote has a table of this name, of another format."""


class ReadOnly(Named, Forbidden):
    """The catalog does not pass changes on to its remote."""

    def __init__(self, catalog: str, *, fix: str) -> None:
        super().__init__("The federated catalog is read-only", name=catalog, fix=fix)


class BeingMoved(Named, Unavailable):
    """The catalog is on its way from its remote to us: read only, until it is ours. 503."""

    def __init__(self, catalog: str) -> None:
        super().__init__(
            "The catalog is being moved here from its remote",
            name=catalog,
            fix="Try again when that is done.",
        )


class NotOffered(Named, CynosureError):
    """What this kind of remote does not do, or what is not passed on to any. 501: nothing was asked."""

    def __init__(self, catalog: str, *, operation: str, fix: str) -> None:
        super().__init__(
            "The remote catalog cannot be asked for this", name=catalog, operation=operation, fix=fix
        )


class DoneUnseen(Named, CynosureError):
    """The remote did what was asked, and what it has now cannot be shown here. 502: not to be repeated."""

    def __init__(self, catalog: str, *, problem: str) -> None:
        super().__init__(
            "The remote catalog has done it, but what it has now is not allowed in this catalog",
            name=catalog,
            problem=problem,
            fix="Ask whoever administers this catalog to compare its allowed locations with the remote's.",
        )


class NotShown(Named, Forbidden):
    """The remote has it, and it cannot be shown: what it says of itself is not allowed in this catalog."""

    def __init__(self, name: str, *, problem: str) -> None:
        super().__init__(
            "The remote has this, and it cannot be shown here",
            name=name,
            problem=problem,
            fix="Ask whoever administers this catalog to compare what it allows with what the remote has.",
        )
