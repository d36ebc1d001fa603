"""Settings of the catalog room."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct

from cynosure.common.settings import ByteSize, Duration


class SizeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What one table may hold at most. Greater input is refused with 400."""

    columns: Annotated[int, Meta(ge=1)] = 5_000
    """Columns of a schema, nested ones counted."""
    properties_bytes: ByteSize = 2**20
    """All names and values of the properties of one table, view or namespace together."""
    snapshots: Annotated[int, Meta(ge=1)] = 50_000
    """Snapshots a table may keep."""


class CatalogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How catalogs behave."""

    first: str | None = None
    """Name of a catalog to create, below `warehouse` in the data directory, when there is none at the start.
    Left out: `main` for `cynosure up`, none for `cynosure serve`; empty: none."""
    answers_bytes: ByteSize = 32 * 2**20
    """Memory for tables as they were last answered, per worker process."""
    page_size: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Entries of one page when a client pages without naming a size."""
    reports_kept: Annotated[int, Meta(ge=0)] = 100
    """Metrics reports kept per table; the oldest go first."""
    staging_lifetime: Duration = timedelta(days=1)
    """How long the location of a table is kept for a client that stages its creation and is given access to
    it. Longer than any credential lives, and than any client writes before it commits."""
    sizes: SizeSettings = SizeSettings()
    """See below."""
