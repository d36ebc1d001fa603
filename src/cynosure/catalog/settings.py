"""Settings of the catalog room."""

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cynosure.common.settings import ByteSize, Duration, DurationOrZero


class SizeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What one table may hold at most. Greater input is refused with 400."""

    columns: Annotated[int, Meta(ge=1)] = 5_000
    """Columns of a schema, nested ones counted."""
    properties_bytes: ByteSize = 2**20
    """All names and values of the properties of one table, view or namespace together."""
    snapshots: Annotated[int, Meta(ge=1)] = 50_000
    """Snapshots a table may keep."""


class PlanningSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Scans that the server plans for its clients."""

    page_files: Annotated[int, Meta(ge=1, le=100_000)] = 2_000
    """About how many files one answer of a plan has; the others are asked for by plan tasks."""
    wait: DurationOrZero = timedelta(seconds=5)
    """How long a request waits for the first answer of its plan, before it is told to ask again later."""
    concurrent: Annotated[int, Meta(ge=1)] = 16
    """Plans that are made in the background at once, per worker process. More are refused with 503."""
    credentials: Literal["table", "partitions"] = "table"
    """What the credentials of a plan reach: all files of the table, or only the directories of the planned
    files, where a plan is complete in one answer and has at most 8 of them."""


class CatalogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How catalogs behave."""

    first: str | None = None
    """Name of a catalog to create, below `warehouse` in the data directory, when there is none at the start.
    Left out: `main` for `cynosure up`, none for `cynosure serve`; empty: none."""
    answers_bytes: ByteSize = 32 * 2**20
    """Memory for tables as they were last answered, per worker process."""
    manifests_bytes: ByteSize = 128 * 2**20
    """Memory for manifests and manifest lists that were read, per worker process."""
    manifest_reads: Annotated[int, Meta(ge=1)] = 16
    """Manifests that a worker process reads from storage at once."""
    manifest_reads_bytes: ByteSize = 64 * 2**20
    """Bytes of manifests that a worker process reads at once. A larger manifest is read alone."""
    page_size: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Entries of one page when a client pages without naming a size."""
    reports_kept: Annotated[int, Meta(ge=0)] = 100
    """Metrics reports kept per table; the oldest go first."""
    staging_lifetime: Duration = timedelta(days=1)
    """How long the location of a table is kept for a client that stages its creation and is given access to
    it. Longer than any credential lives, and than any client writes before it commits."""
    sizes: SizeSettings = SizeSettings()
    """See below."""
    planning: PlanningSettings = PlanningSettings()
    """See below."""
