"""A view while updates are applied to it.

A maintainer must not break: nothing of the view that the draft started from is changed.
"""

from msgspec import Struct

from cynosure.iceberg.document import Document
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.views.metadata import FORMAT_VERSION, ViewMetadata
from cynosure.iceberg.views.version import ViewLogEntry, ViewVersion


class Draft(Struct, kw_only=True):
    """What updates change, and what later updates of the same commit may refer to."""

    base: ViewMetadata | None
    view_uuid: str | None = None
    format_version: int = FORMAT_VERSION
    location: str | None = None
    current_version_id: int | None = None
    versions: list[Document[ViewVersion]] = []
    version_log: list[Document[ViewLogEntry]] = []
    schemas: list[Document[Schema]] = []
    properties: dict[str, str] = {}
    last_schema_id: int | None = None
    last_version_id: int | None = None
    added_version_ids: set[int] = set()

    @classmethod
    def of(cls, base: ViewMetadata | None) -> "Draft":
        """A draft of a view, or of one that does not exist yet."""
        if base is None:
            return cls(base=None)
        return cls(
            base=base,
            view_uuid=base.view_uuid,
            format_version=base.format_version,
            location=base.location,
            current_version_id=base.current_version_id,
            versions=list(base.versions),
            version_log=list(base.version_log),
            schemas=list(base.schemas),
            properties=dict(base.properties),
        )

    def find_version(self, version_id: int) -> ViewVersion | None:
        """A version by its id."""
        return next((one.value for one in self.versions if one.value.version_id == version_id), None)
