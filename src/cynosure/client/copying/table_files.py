"""All files of a table, snapshot by snapshot, from where they are to where the copy has them.

A maintainer must not break: a file that names others is written after them, so whoever is killed leaves
nothing that refers to a file that is not there. Only files that a snapshot has are read: what a snapshot took
away may be gone.
"""

import asyncio
import shutil
from collections import defaultdict
from hashlib import blake2b
from typing import IO, Any, Final

from cynosure.client.appends import require_pyarrow
from cynosure.client.copying.paths import Paths
from cynosure.client.copying.state import list_statistics
from cynosure.client.copying.transfers import Transfers, for_each
from cynosure.client.copying.vectors import repath_vectors
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.repath import (
    NamedFile,
    Remeasured,
    list_named_files,
    repath_manifest,
    repath_manifest_list,
)

_MANIFESTS_AT_ONCE: Final = 4
_FILES_AT_ONCE: Final = 8
_REWRITTEN_AT_ONCE: Final = 2
"""They are in memory meanwhile."""
_DIGEST_BYTES: Final = 16


class TableFiles:
    """The files of one table, on their way."""

    def __init__(self, transfers: Transfers, paths: Paths) -> None:
        self._transfers = transfers
        self._paths = paths
        self._manifests: dict[str, tuple[str, int]] = {}
        """Those that are there, with path and length in the copy. Snapshots share nearly all of theirs."""
        self._seen: set[bytes] = set()
        """Digests of the files that are there or on their way: some hundred bytes for each file."""
        self._rewritten: dict[str, Remeasured] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Two manifests at once may name one file that names others: the second waits for the first."""
        self._rewriting = asyncio.Semaphore(_REWRITTEN_AT_ONCE)

    async def copy(self, metadata: dict[str, Any]) -> None:
        """Have all files there that metadata name, directly or not."""
        for snapshot in metadata.get("snapshots") or ():
            await self._copy_snapshot(snapshot["manifest-list"])
        for path, size_bytes in list_statistics(metadata):
            await self._transfers.copy(path, self._paths.rename(path), size_bytes)

    async def _copy_snapshot(self, path: str) -> None:
        data = await self._transfers.load(path)
        listed = (await asyncio.to_thread(read_manifest_list, data, path=path)).manifests
        for each in listed:
            if each.key_metadata:
                raise _encrypted(each.path)
        missing = {each.path: each for each in listed if each.path not in self._manifests}
        await for_each(missing.values(), self._copy_manifest, _MANIFESTS_AT_ONCE)
        # Order: after its manifests, which must be there, and whose lengths are in it.
        known = {each.path: self._manifests[each.path] for each in listed}
        changed = await asyncio.to_thread(repath_manifest_list, data, path=path, manifests=known)
        await self._transfers.save(self._paths.rename(path), changed)

    async def _copy_manifest(self, listed: ManifestFile) -> None:
        path = listed.path
        data = await self._transfers.load(path)
        files = await asyncio.to_thread(_list_live, data, path)
        await for_each(filter(self._is_new, files), self._copy_file, _FILES_AT_ONCE)
        # One file may hold the vectors of many.
        naming = {each.path: each for each in files if _names_files(each)}
        await for_each(naming.values(), self._rewrite, _FILES_AT_ONCE)
        rewritten = {each: self._rewritten[each] for each in naming}
        changed = await asyncio.to_thread(
            repath_manifest, data, path=path, rename=self._paths.rename, rewritten=rewritten
        )
        target = self._paths.rename(path)
        await self._transfers.save(target, changed)
        self._manifests[path] = (target, len(changed))

    def _is_new(self, file: NamedFile) -> bool:
        if _names_files(file):
            return False
        # Another manifest on its way may have it: the snapshot is there when both are.
        digest = blake2b(file.path.encode(), digest_size=_DIGEST_BYTES).digest()
        is_new = digest not in self._seen
        self._seen.add(digest)
        return is_new

    async def _copy_file(self, file: NamedFile) -> None:
        await self._transfers.copy(file.path, self._paths.rename(file.path), file.size_bytes)

    async def _rewrite(self, file: NamedFile) -> None:
        path, rename = file.path, self._paths.rename
        if file.format not in ("puffin", "parquet"):
            raise BadInput(
                "The table has position deletes in a format that this client cannot rewrite",
                field="data-files",
                fix="Rewrite them with an engine (rewrite_position_delete_files), or leave it behind.",
                format=file.format,
                path=path,
            )
        if file.format == "parquet":
            require_pyarrow()

        def change(source: IO[bytes], into: IO[bytes]) -> Remeasured:
            if file.format == "puffin":
                shutil.copyfileobj(source, into)
                return Remeasured(repath_vectors(into, rename, path=path))
            from cynosure.client.copying.position_deletes import rewrite_position_deletes  # noqa: PLC0415

            return rewrite_position_deletes(source, into, rename, path=path)

        async with self._turns[path], self._rewriting:
            if path not in self._rewritten:
                self._rewritten[path] = await self._transfers.rewrite(path, rename(path), change)


def _encrypted(path: str) -> BadInput:
    """A table whose files nobody here can read."""
    return BadInput(
        "The table is encrypted, and this client has no keys",
        field="data-files",
        fix="Leave it behind, or copy it with an engine that has the keys.",
        path=path,
    )


def _list_live(data: bytes, path: str) -> list[NamedFile]:
    live = [each for each in list_named_files(data, path=path) if each.status is not Status.DELETED]
    for each in live:
        if each.is_encrypted:
            raise _encrypted(each.path)
    return live


def _names_files(file: NamedFile) -> bool:
    """Whether other files are named inside of it."""
    return file.content is Content.POSITION_DELETES
