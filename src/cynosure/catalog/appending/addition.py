"""Files that the append endpoint was sent, and how they become entries of a snapshot.

Must not break: nothing is taken on trust that the table's metadata can tell better. Ids and numbers are ours;
partition values, metrics and paths are checked against the table as it is when they are added.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from cynosure.catalog.appending.draft import TableDraft, off_loop, run_all
from cynosure.catalog.errors import LocationRefused
from cynosure.common.errors import BadInput
from cynosure.iceberg.appending.check_files import check_files, find_present
from cynosure.iceberg.appending.writing import find_type, spec_types
from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Status
from cynosure.iceberg.manifests.content_file_json import JsonTypes, file_from_json
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import AssertTableUuid, check_table_uuid
from cynosure.iceberg.snapshots import MAIN
from cynosure.storage.errors import FileMissing

MOST_FILES: Final = 100_000
"""Of one request."""
MOST_MANIFESTS: Final = 1_000
"""Of one request. Who else appends to the table waits while they are read."""
_MOST_SUMMARY_BYTES: Final = 64 * 1024
"""It stays in the table's metadata, which every client loads, for as long as the snapshot does."""
_RESERVED: Final = ("added-", "deleted-", "removed-", "total-", "changed-partition-count", "manifests-")
"""How entries of a summary begin that say what a snapshot did: the server counts it."""


class Addition:
    """What one request wants to append."""

    def __init__(
        self,
        *,
        data_files: Sequence[Any] = (),
        manifests: Sequence[str] = (),
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        table_uuid: str | None = None,
    ) -> None:
        """`data_files` are decoded JSON. `BadInput` for what no table could take."""
        if not data_files and not manifests:
            raise BadInput(
                "There is nothing to append", field="data-files", fix="Send data-files, manifests or both."
            )
        if len(data_files) > MOST_FILES:
            raise BadInput("Too many files at once", field="data-files", fix=f"Send at most {MOST_FILES}.")
        if len(manifests) > MOST_MANIFESTS:
            raise BadInput(
                "Too many manifests at once", field="manifests", fix=f"Send at most {MOST_MANIFESTS}."
            )
        if sum(len(key) + len(value) for key, value in (summary or {}).items()) > _MOST_SUMMARY_BYTES:
            raise BadInput(
                "The summary is too large", field="summary", fix=f"Send at most {_MOST_SUMMARY_BYTES} bytes."
            )
        for key in summary or ():
            if key == "operation" or key.startswith(_RESERVED):
                raise BadInput(
                    "The server itself sets this entry of the summary",
                    field=f"summary.{key[:100]}",
                    fix="Leave it out.",
                )
        self.branch = branch
        self.summary = dict(summary or {})
        self._table_uuid = table_uuid
        self._data_files = data_files
        self._manifests = manifests
        self._parsed: tuple[object, object, tuple[ContentFile, ...]] | None = None
        self._read: tuple[ContentFile, ...] | None = None

    @property
    def kind(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Requests of one kind can share a snapshot."""
        return self.branch, tuple(sorted(self.summary.items()))

    def name_field(self, at: int) -> str:
        """What of the request names a file, by its place among all."""
        return f"data-files[{at}].file-path" if at < len(self._data_files) else "manifests"

    async def load_files(self, draft: TableDraft) -> tuple[ContentFile, ...]:
        """The files, checked against the table as it is."""
        metadata = draft.metadata
        if self._table_uuid is not None:
            check_table_uuid(metadata, AssertTableUuid(self._table_uuid))
        _check_branch(metadata, self.branch)

        def check() -> tuple[ContentFile, ...]:
            files = self._parse(metadata)
            check_files(files, metadata, is_allowed=partial(_is_own, draft))
            return files

        files = await off_loop(len(self._data_files), check)
        if self._manifests:
            listed = await self._read_manifests(draft)
            check_listed = partial(
                check_files, listed, metadata, is_allowed=partial(_is_own, draft), field="manifests.files"
            )
            await off_loop(len(listed), check_listed)
            files += listed
            _check_twice(files)
        return files

    def _parse(self, metadata: TableMetadata) -> tuple[ContentFile, ...]:
        known = self._parsed
        if known is not None and known[0] is metadata.schemas and known[1] is metadata.partition_specs:
            return known[2]
        specs = [one.value for one in metadata.partition_specs]
        kinds = JsonTypes(
            {spec.spec_id: spec_types(metadata, spec) for spec in specs}, partial(find_type, metadata)
        )
        files = tuple(
            file_from_json(json, kinds, field=f"data-files[{at}]") for at, json in enumerate(self._data_files)
        )
        self._parsed = (metadata.schemas, metadata.partition_specs, files)
        return files

    async def _read_manifests(self, draft: TableDraft) -> tuple[ContentFile, ...]:
        if self._read is None:
            found: list[ContentFile] = []
            for start in range(0, len(self._manifests), draft.files.most_reads):
                some = self._manifests[start : start + draft.files.most_reads]
                reads = (
                    _read_manifest(draft, path, field=f"manifests[{start + at}]")
                    for at, path in enumerate(some)
                )
                for files in await run_all(*reads):
                    found += files
                if len(found) > MOST_FILES:
                    raise BadInput(
                        "Too many files at once", field="manifests", fix=f"Send at most {MOST_FILES}."
                    )
            self._read = tuple(found)
        return self._read


def _is_own(draft: TableDraft, path: str) -> bool:
    """Whether the table may hold a file, named as the table names its places: so it has one name only."""
    return draft.files.holds(path) and draft.files.spells(path)


async def _read_manifest(draft: TableDraft, path: str, *, field: str) -> list[ContentFile]:
    """The files of a manifest that a client wrote for this."""
    try:
        manifest = await draft.files.read_manifest(path)
    except LocationRefused as error:
        raise BadInput(
            "The manifest is outside of what the table may hold",
            field=field,
            fix="Write it into the location of the table.",
            path=path[:200],
        ) from error
    except (InvalidManifest, FileMissing) as error:
        raise BadInput(
            error.message, field=field, fix="Send where a whole manifest of this table is.", path=path[:200]
        ) from error
    if manifest.is_deletes or not all(status == Status.ADDED for status in manifest.statuses):
        raise BadInput(
            "The manifest has something else than added data files",
            field=field,
            fix="Send a manifest whose entries are all ADDED and are data files.",
            path=path[:200],
        )
    files = [manifest.file(row) for row in range(manifest.count)]
    if any(file.content is not Content.DATA for file in files):
        raise BadInput("The manifest has delete files", field=field, fix="Send data files.", path=path[:200])
    return files


def _check_branch(metadata: TableMetadata, branch: str) -> None:
    ref = metadata.find_ref(branch)
    if ref is None and branch != MAIN:
        raise BadInput("There is no such branch", field="branch", fix="Create it first.", branch=branch[:100])
    if ref is not None and ref.type != "branch":
        raise BadInput("This is a tag", field="branch", fix="Name a branch.", branch=branch[:100])


def _check_twice(files: Iterable[ContentFile]) -> None:
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise BadInput(
                "A file is sent twice", field="manifests", fix="Send each file once.", path=file.path[:200]
            )
        seen.add(file.path)


async def check_absent(draft: TableDraft, addition: Addition, paths: Sequence[str]) -> None:
    """Refuse files that the branch has already: their rows would be there twice."""
    branch = addition.branch
    listed = [one for one in await draft.load_head(branch) if _is_asked(one)]
    wanted = frozenset(paths)
    # Some at a time: memory does not grow with the table.
    for at in range(0, len(listed), draft.files.most_reads):
        for manifest in await draft.load_all(listed[at : at + draft.files.most_reads]):
            found = find_present(manifest, wanted)
            if found is not None:
                raise BadInput(
                    "The table has this file already",
                    field=addition.name_field(paths.index(found)),
                    fix="Leave the file out, or write its rows into a new one.",
                    path=found[:200],
                )


def _is_asked(listed: ManifestFile) -> bool:
    return listed.content is ManifestContent.DATA and listed.has_live_files
