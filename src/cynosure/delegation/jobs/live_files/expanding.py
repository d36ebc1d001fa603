"""From the metadata of a table to all files that any of its snapshots names.

    metadata ── manifest lists ── manifests (each once) ── data, delete and deletion vector files
            └── statistics, metadata log

A maintainer must not break: memory is bounded by one manifest list, a few manifests and 16 bytes for each
manifest seen; and a file outside of the table's places is not even read.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from msgspec import Struct, field

from cynosure.common.errors import TooLarge
from cynosure.delegation.jobs.live_files.decoding import list_content, list_manifests
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import References, Role
from cynosure.delegation.jobs.live_files.side_by_side import side_by_side
from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.storage.errors import FileMissing
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileIO

MOST_NAMED: Final = 100
"""Most paths that are reported one by one."""
_READS: Final = 8

Found = tuple[Role, str]


class Trouble(Struct):
    """What could not be read."""

    missing: list[str] = field(default_factory=list)
    missing_count: int = 0
    corrupt: list[str] = field(default_factory=list)
    corrupt_count: int = 0
    encrypted: list[str] = field(default_factory=list)
    """Manifests that only the table's readers have a key to."""
    encrypted_count: int = 0
    unreachable: list[str] = field(default_factory=list)
    """Lists and manifests outside of the table's places: not read."""
    unreachable_count: int = 0

    def add_missing(self, path: str) -> None:
        """A list or manifest that is not there: as if it were empty."""
        self.missing_count += 1
        _add(self.missing, path)

    def add_corrupt(self, path: str) -> None:
        """A list or manifest that is not what it must be."""
        self.corrupt_count += 1
        _add(self.corrupt, path)

    def add_unreachable(self, path: str) -> None:
        """A list or manifest outside of the table's places."""
        self.unreachable_count += 1
        _add(self.unreachable, path)

    def add_encrypted(self, path: str) -> None:
        """A manifest that only the table's readers have a key to: its files are known by the listing."""
        self.encrypted_count += 1
        _add(self.encrypted, path)


def _add(paths: list[str], path: str) -> None:
    if len(paths) < MOST_NAMED:
        paths.append(path)


class Expanding:
    """One walk through a table."""

    def __init__(self, files: FileIO, places: Places, *, with_deleted: bool) -> None:
        self._files = files
        self._places = places
        self._with_deleted = with_deleted
        self._seen: set[bytes] = set()
        self.trouble = Trouble()

    async def run(self, references: References) -> AsyncGenerator[list[Found], None]:
        """Everything that is named, some at a time, with repetitions, inside and outside of the places."""
        yield list(references.files)
        yield [(Role.MANIFEST_LIST, path) for path in references.lists]
        yield [(Role.MANIFEST, path) for path in references.manifests]
        async with aclosing(self.read_manifests((path, None) for path in references.manifests)) as contents:
            async for found in contents:
                yield found
        async with aclosing(side_by_side(self.read_list, references.lists, width=_READS)) as lists:
            async for listed in lists:
                yield [(Role.MANIFEST, each.path) for each in listed]
                lines = ((each.path, each) for each in listed)
                async with aclosing(self.read_manifests(lines)) as contents:
                    async for found in contents:
                        yield found

    async def read_manifests(
        self, wanted: Iterable[tuple[str, ManifestFile | None]]
    ) -> AsyncGenerator[list[Found], None]:
        """The files that manifests name, which have not been read yet."""
        new = (each for each in wanted if self._is_new(each[0]))
        async with aclosing(side_by_side(self._read_manifest, new, width=_READS)) as read:
            async for paths in read:
                yield [(Role.CONTENT, path) for path in paths]

    def _is_new(self, path: str) -> bool:
        digest = hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=16).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True

    async def read_list(self, path: str) -> list[ManifestFile]:
        """The manifests of a list; none when it cannot be read."""
        data = await self._read(path)
        if data is None:
            return []
        try:
            return await asyncio.to_thread(list_manifests, data, path)
        except InvalidManifest:
            self.trouble.add_corrupt(path)
            return []

    async def _read_manifest(self, wanted: tuple[str, ManifestFile | None]) -> list[str]:
        path, listed = wanted
        if listed is not None and listed.key_metadata:
            self.trouble.add_encrypted(path)
            return []
        data = await self._read(path)
        if data is None:
            return []
        try:
            return await asyncio.to_thread(list_content, data, path, listed, with_deleted=self._with_deleted)
        except InvalidManifest:
            self.trouble.add_corrupt(path)
            return []

    async def _read(self, path: str) -> bytes | None:
        named = self._places.find(path)
        if named is None:
            self.trouble.add_unreachable(path)
            return None
        try:
            return await self._files.read(self._places.locate(named), limit_bytes=READ_LIMIT_BYTES)
        except FileMissing:
            self.trouble.add_missing(path)
        except TooLarge:
            self.trouble.add_corrupt(path)
        return None
