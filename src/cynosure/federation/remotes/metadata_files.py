"""Metadata files of tables whose remote only keeps pointers: read and written with the catalog's own storage.

A maintainer must not break: nothing is read or written outside of what the catalog allows. And the names of
these files are not signed as those of our own tables are (`catalog.files.export`): its sweep deletes signed
files that no state of ours has, and these belong to nobody's state.
"""

import gzip
import uuid
from typing import Final

from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.files.export import COMPRESSION, DELETE_AFTER_COMMIT, metadata_directory, remove
from cynosure.catalog.files.importing import file_number_of, load_metadata_file
from cynosure.catalog.locations import check_allowed, check_paths
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.storage.location import Location

_CODECS: Final = ("none", "gzip")


class MetadataFiles:
    """The metadata files of one catalog's remote."""

    def __init__(self, catalog: OpenCatalog) -> None:
        self._catalog = catalog

    async def read(self, text: str) -> TableMetadata:
        """The metadata in a file. `LocationRefused` before anything is read."""
        location = check_allowed(self._catalog, text, field="metadata-location")
        return await load_metadata_file(self._catalog, location)

    async def write(self, metadata: TableMetadata, *, previous: str | None) -> str:
        """Write the next file of a table; where it is. Its number follows that of the previous one."""
        check_allowed(self._catalog, metadata.location, field="location")
        check_paths(self._catalog, metadata.properties)
        directory = check_allowed(
            self._catalog, metadata_directory(metadata).rstrip("/"), field="metadata-location"
        )
        codec = metadata.properties.get(COMPRESSION, "none").lower()
        if codec not in _CODECS:
            raise BadInput(
                "Unknown compression of metadata files",
                field=f"properties.{COMPRESSION}",
                fix="Use none or gzip.",
                codec=codec[:50],
            )
        is_packed = codec == "gzip"
        number = 0 if previous is None else file_number_of(previous) + 1
        name = f"{number:05d}-{uuid.uuid4()}{'.gz' if is_packed else ''}.metadata.json"
        json = encode_metadata(metadata)
        location = directory.child(name)
        await self._catalog.files.write(location, gzip.compress(json, 1, mtime=0) if is_packed else json)
        return location.text

    def discard(self, text: str) -> None:
        """Delete, in the background, a file that no pointer names and none ever will."""
        self._start_removing([Location.parse(text)])

    def discard_outdated(self, metadata: TableMetadata, outdated: list[str]) -> None:
        """Delete files that fell out of a table's log, where the table asks for it."""
        if metadata.properties.get(DELETE_AFTER_COMMIT, "false").lower() != "true":
            return
        own = Location.parse(metadata.location)
        self._start_removing([each for text in outdated if (each := self._find_within(text, own))])

    def _find_within(self, text: str, own: Location) -> Location | None:
        """Below the table's own place: the log came with a file of somebody else's and may name any other."""
        try:
            location = check_allowed(self._catalog, text, field="metadata-log")
        except (BadInput, LocationRefused):
            return None
        return location if location.is_within(own) else None

    def _start_removing(self, locations: list[Location]) -> None:
        if locations:
            self._catalog.shared.background.start("metadata_file.remove", remove(self._catalog, locations))
