"""How long we wait for a storage, how often we try, and what clients are given.

A maintainer must not break: `operation_timeout` bounds every operation including its retries, and stays well
below `persistence.commit_deadline`, because a commit writes its metadata file before it is queued. Keys of an
operator serve only catalogs that keep within what the operator wrote beside them.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from cynosure.common.errors import BadInput, Misconfigured
from cynosure.common.quantities import format_duration
from cynosure.common.secrets import Secret
from cynosure.common.settings import Duration, Texts
from cynosure.storage.location import Location

SHORTEST_LIFETIME = timedelta(minutes=15)
LONGEST_LIFETIME = timedelta(hours=12)
"""What Amazon's token service allows."""


LEAST_LEFT_TO_SCANS = 2 / 3
"""Of the life of credentials that are renewed: 10 minutes of 15, of which the gateway waits for 5."""


class StorageCredentials(Struct, frozen=True, forbid_unknown_fields=True):
    """An access key of S3 that catalogs use by its name (their `storageName`), without ever holding it."""

    access_key_id: str
    """The key's public part."""
    secret_access_key: Secret
    """The key's secret part."""
    locations: Texts
    """Catalogs may use it only if all of their allowed locations are below these."""
    endpoints: Texts = ()
    """The endpoints that such a catalog may name, for itself, for clients and for tokens. Left out: none, so
    that it is Amazon's own."""
    realms: Texts = ()
    """The realms whose catalogs may use it. Left out: all."""


class StorageSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Files of catalogs, as this server itself reaches them, and the access to them that clients are given.

    Local files have no timeouts.
    """

    connect_timeout: Duration = timedelta(seconds=3)
    """Longest wait for a connection to an object store."""
    stall_timeout: Duration = timedelta(seconds=10)
    """An attempt is given up when no byte has arrived for this long."""
    operation_timeout: Duration = timedelta(seconds=30)
    """Bound of one operation with all its attempts; the operation then fails as unavailable. Also bounds the
    wait for new credentials."""
    retries: Annotated[int, Meta(ge=0, le=20)] = 3
    """Attempts after the first, where repeating is safe: server errors, lost connections, stalled reads."""
    max_concurrent: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Most operations on one catalog's storage that one process has under way; further ones wait."""
    ca_file: Path | None = None
    """Certificates of authorities that are trusted besides the system's, for stores and token services."""
    log_files: bool = False
    """Whether every file that is written or deleted leaves a line in the log."""
    credential_lifetime: Duration = timedelta(hours=1)
    """How long credentials for clients are asked to live, 15 minutes to 12 hours. Stores may give less."""
    scan_credential_lifetime: Duration = timedelta(minutes=15)
    """The same for those that a gateway of SQL gets for a user's statement, and renews while it reads. Tokens
    of Google live as long as Google says."""
    min_remaining_life: Annotated[float, Meta(ge=0.0, le=0.95)] = 0.5
    """No client gets credentials of which less than this part of their life is left."""
    session_tags: bool = False
    """Whether sessions of S3 are tagged with realm, catalog, table and principal. The role must allow it
    (`sts:TagSession`); not every store knows it."""
    credentials: dict[str, StorageCredentials] = field(default_factory=dict)
    """Access keys of this server, by the name that catalogs refer to."""
    file_roots: dict[str, Path] = field(default_factory=dict)
    """Directories of this machine, by any name, below which catalogs may keep their files, besides
    `warehouse` in the data directory."""
    file_on_network: bool = False
    """Whether a server that other machines can reach serves catalogs on local files too. Their clients would
    have to see the same files."""


def check_storage_settings(settings: StorageSettings) -> None:
    """Refuse what token services would refuse, when the server starts rather than when somebody asks."""
    for key in ("credential_lifetime", "scan_credential_lifetime"):
        if not SHORTEST_LIFETIME <= getattr(settings, key) <= LONGEST_LIFETIME:
            raise Misconfigured(
                "Credentials cannot live that long or that short",
                key=f"storage.{key}",
                fix=f"Write a duration from {format_duration(SHORTEST_LIFETIME)} to "
                f"{format_duration(LONGEST_LIFETIME)}.",
            )
    for name, each in settings.credentials.items():
        if not each.locations:
            raise Misconfigured(
                "Named credentials serve no location",
                key=f"storage.credentials.{name}.locations",
                fix="Name the locations that catalogs may reach with them.",
            )
        for text in each.locations:
            try:
                Location.parse(text)
            except BadInput as error:
                raise Misconfigured(
                    error.message, key=f"storage.credentials.{name}.locations", fix=error.fix
                ) from error
