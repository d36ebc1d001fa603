"""A view's metadata as one immutable value."""

from typing import Final

from msgspec import Struct

from cynosure.iceberg.document import Document
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.views.version import ViewLogEntry, ViewVersion

FORMAT_VERSION: Final = 1
"""The only version of the view format so far."""


class ViewMetadata(Struct, frozen=True, kw_only=True):
    """All that Iceberg says about a view, less where it is stored."""

    view_uuid: str
    format_version: int
    location: str
    current_version_id: int
    versions: tuple[Document[ViewVersion], ...]
    """In the order they were added."""
    version_log: tuple[Document[ViewLogEntry], ...]
    """Oldest first."""
    schemas: tuple[Document[Schema], ...]
    properties: dict[str, str]
    unknown: dict[str, bytes]
    """Top-level fields that this version does not know, as JSON."""

    def current_version(self) -> ViewVersion:
        """The definition that queries use."""
        return next(one.value for one in self.versions if one.value.version_id == self.current_version_id)

    def current_schema(self) -> Schema:
        """The columns that the current definition gives."""
        schema_id = self.current_version().schema_id
        return next(one.value for one in self.schemas if one.value.schema_id == schema_id)
