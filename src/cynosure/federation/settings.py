"""How remotes are asked: limits for a worker process, and defaults for what a catalog's properties may say.

A catalog's properties may narrow what stands here: `cynosure.federation.max-staleness`,
`cynosure.federation.stale-if-down`, `cynosure.federation.read-only`, `cynosure.federation.credentials`,
`cynosure.federation.grants`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cynosure.common.settings import ByteSize, Duration, DurationOrZero


class FederationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Remote catalogs."""

    enabled: bool = True
    """Whether remotes are asked at all, and catalogs may get connections to them."""
    allow_implicit: bool = False
    """Whether a connection may have no authentication at all (`IMPLICIT`); not the environment's either."""
    allow_insecure: bool = False
    """Whether remotes at other hosts may be asked without TLS: plain HTTP, Hive, databases that have none."""
    ca_file: Path | None = None
    """Certificates of authorities that are trusted besides the system's, for remotes over HTTPS."""
    connect_timeout: Duration = timedelta(seconds=5)
    """For a connection to a remote."""
    timeout: Duration = timedelta(seconds=30)
    """For a whole answer of a remote, however slowly it comes."""
    answer_bytes: ByteSize = 64 * 2**20
    """The largest answer that is read from a remote."""
    concurrent: Annotated[int, Meta(ge=1)] = 16
    """Requests to one remote at once, per worker process; further ones wait."""
    concurrent_each: Annotated[int, Meta(ge=1)] = 12
    """Of these, requests of one principal. Fewer than all: others get an answer while its own take long."""
    waiting: Annotated[int, Meta(ge=0)] = 256
    """Requests that may wait for one remote. When more come, who has most of them is refused with 503."""
    retries: Annotated[int, Meta(ge=0)] = 2
    """Of a request that changes nothing and was not answered. At most a tenth of all requests are retries."""
    break_after: Annotated[int, Meta(ge=1)] = 5
    """Failures in a row after which a remote is left alone for a while."""
    break_for: Duration = timedelta(seconds=10)
    """How long. Then one request tries again."""
    max_staleness: DurationOrZero = timedelta(0)
    """How long what was seen of a remote counts without asking again. 0: every load asks, by entity tag."""
    negative: DurationOrZero = timedelta(seconds=1)
    """How long a table that a remote did not have is not asked for again."""
    stale_if_down: DurationOrZero = timedelta(0)
    """How old what was seen may be to be shown while the remote does not answer. 0: 503 instead."""
    credentials: Literal["own", "remote", "none"] = "own"
    """Whose credentials clients get: those of the catalog's own storage, the remote's, narrowed, or none."""
    grants: Literal["validated", "by-name"] = "validated"
    """Whether a grant on a table is for the one that the remote has now, or for whichever has the name."""
    clients: Annotated[int, Meta(ge=1)] = 256
    """Clients of remotes that are kept open, per worker process."""
