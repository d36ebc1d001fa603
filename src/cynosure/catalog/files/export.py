"""Metadata files: their names, writing them, and removing those of attempts that lost.

The file is written while a commit is *prepared*, before the swap makes it reachable. Each attempt writes a
file of its own, named after the state it belongs to and signed for this catalog; so the file of a state that
never came to be is recognised (`sweep.py`), and a file that somebody else wrote is never taken for one.

Not synced to disk: the state is in the store, and a file that a power cut took can be exported again.

Must not break: `00012-<state's id, 16 hex digits><signature, 16 hex digits>.metadata.json`, with the dashes
of a UUID; the sweep reads these names.
"""

import gzip
import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple, Self

from cynosure.auth.request_key import Refused
from cynosure.catalog.locations import METADATA_PATH
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput, CynosureError, OutcomeUnknown
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location

COMPRESSION: Final = "write.metadata.compression-codec"
DELETE_AFTER_COMMIT: Final = "write.metadata.delete-after-commit.enabled"

_log = Log(__name__)
_NAME: Final = re.compile(
    r"([0-9]{5,9})-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})(?:\.gz)?\.metadata\.json"
)


class FileName(NamedTuple):
    """What the name of a metadata file of ours says."""

    number: int
    state_id: ObjId


class Export:
    """The metadata files, and manifests beside them, that one operation writes.

    Used as a context around the commit: when it ends, the files of attempts that lost are removed. When
    nobody knows whether the commit was applied, all stay.
    """

    def __init__(self, catalog: OpenCatalog) -> None:
        self._catalog = catalog
        self._written: dict[str, Location] = {}

    async def write_table(self, metadata: TableMetadata, json: bytes, number: int, state_id: ObjId) -> str:
        """Write the file of one state; where it is."""
        directory, codec = metadata_directory(metadata), metadata.properties.get(COMPRESSION, "none")
        return await self.write(directory, json, number, state_id, codec=codec)

    async def write(
        self, directory: str, json: bytes, number: int, state_id: ObjId, *, codec: str = "none"
    ) -> str:
        """Write a metadata file into a directory; where it is."""
        is_packed = _is_gzip(codec)
        location = _parse_directory(directory).child(
            name_file(self._catalog, number, state_id, is_packed=is_packed)
        )
        text = location.text
        # Order: noted first; a write whose answer is lost may have been done.
        self._written[text] = location
        await self._catalog.files.write(location, gzip.compress(json, 1, mtime=0) if is_packed else json)
        return text

    async def write_beside(self, metadata: TableMetadata, name: str, data: bytes) -> None:
        """Write a file that the metadata will name, to where `place_beside` says."""
        location = _parse_directory(metadata_directory(metadata)).child(name)
        self._written[location.text] = location
        await self._catalog.files.write(location, data)

    def keep(self, *locations: str) -> None:
        """These files belong to what was committed."""
        for text in locations:
            self._written.pop(text, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_known = error is None or (
            isinstance(error, CynosureError | Refused) and not isinstance(error, OutcomeUnknown)
        )
        if self._written and is_known:
            losers = list(self._written.values())
            self._catalog.shared.background.start("metadata_file.remove", remove(self._catalog, losers))


def metadata_directory(metadata: TableMetadata) -> str:
    """Where a table's metadata files and manifests are written."""
    return metadata.properties.get(METADATA_PATH) or f"{metadata.location.rstrip('/')}/metadata"


def place_beside(metadata: TableMetadata, name: str) -> str:
    """Where a file of this name is, that is written beside the metadata file."""
    return _parse_directory(metadata_directory(metadata)).child(name).text


@lru_cache(maxsize=1_000)
def _parse_directory(text: str) -> Location:
    # Remembered, because the versions of a table are all written into one.
    return Location.parse(text.rstrip("/"), field="metadata-location")


def name_file(catalog: OpenCatalog, number: int, state_id: ObjId, *, is_packed: bool) -> str:
    """The name of the file of one state."""
    hexa = f"{state_id:016x}{_sign(catalog, state_id)}"
    unique = "-".join((hexa[:8], hexa[8:12], hexa[12:16], hexa[16:20], hexa[20:]))
    return f"{number:05d}-{unique}{'.gz' if is_packed else ''}.metadata.json"


def parse_file_name(catalog: OpenCatalog, name: str) -> FileName | None:
    """What a file's name says; `None` for a file that this catalog did not write."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number, *groups = match.groups()
    hexa = "".join(groups)
    state_id = ObjId(int(hexa[:16], 16))
    return FileName(int(number), state_id) if hexa[16:] == _sign(catalog, state_id) else None


def _sign(catalog: OpenCatalog, state_id: ObjId) -> str:
    # Not a secret's guard: it tells our own files from those of other catalogs and other stores.
    key = catalog.shared.persistence.info.page_key
    text = f"{catalog.realm}/{catalog.entity.id}/{state_id}".encode()
    return hashlib.blake2b(text, key=key[:64], digest_size=8, person=b"metadata-file").hexdigest()


async def remove(catalog: OpenCatalog, locations: Iterable[Location]) -> None:
    """Delete files that nothing refers to."""
    for location in locations:
        try:
            await catalog.files.delete(location)
        except CynosureError as error:
            _log.event("metadata_file.stays", level=WARNING, error=error, location=location.text)


def _is_gzip(codec: str) -> bool:
    lowered = codec.lower()
    if lowered not in ("none", "gzip"):
        raise BadInput(
            "Unknown compression of metadata files",
            field=f"properties.{COMPRESSION}",
            fix="Use none or gzip.",
            codec=codec[:50],
        )
    return lowered == "gzip"
