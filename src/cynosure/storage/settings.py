"""How long we wait for a storage, and how often we try.

A maintainer must not break: `operation_timeout` bounds every operation including its retries, and stays well
below `persistence.commit_deadline`, because a commit writes its metadata file before it is queued.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from cynosure.common.settings import Duration


class StorageSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Files of catalogs, as this server itself reaches them. Local files have no timeouts."""

    connect_timeout: Duration = timedelta(seconds=3)
    """Longest wait for a connection to an object store."""
    stall_timeout: Duration = timedelta(seconds=10)
    """An attempt is given up when no byte has arrived for this long."""
    operation_timeout: Duration = timedelta(seconds=30)
    """Bound of one operation with all its attempts; the operation then fails as unavailable."""
    retries: Annotated[int, Meta(ge=0, le=20)] = 3
    """Attempts after the first, where repeating is safe: server errors, lost connections, stalled reads."""
    file_roots: dict[str, Path] = field(default_factory=dict)
    """Directories of this machine, by any name, below which catalogs may keep their files, besides
    `warehouse` in the data directory."""
    file_on_network: bool = False
    """Whether a server that other machines can reach serves catalogs on local files too. Their clients would
    have to see the same files."""
