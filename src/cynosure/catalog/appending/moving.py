"""Standard commits that append files, placed behind the commits that came first.

For tables, or whole catalogs, with the property `cynosure.commit.rebase-appends`. Which commits, and why that
is what their clients would have done themselves: `iceberg/appending/request.py` and ADR 0022.

Must not break: a client whose commit is moved finds in the table's metadata the snapshot id it chose, and in
that snapshot the manifests it wrote unless they had to be written again. It deletes the others.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from cynosure.catalog.appending.draft import TableDraft, off_loop
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput, Conflict, CynosureError
from cynosure.iceberg.appending.own_manifests import (
    NotAnAppend,
    added_entries,
    find_difference,
    find_fault,
    find_own,
    needs_rewrite,
    opened,
)
from cynosure.iceberg.appending.request import AppendCommit, find_refusal
from cynosure.iceberg.appending.snapshot import make_snapshot
from cynosure.iceberg.errors import InvalidManifest, RequirementFailed, StaleSnapshot
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import TableRequirement, check_requirements
from cynosure.iceberg.updates import TableUpdate
from cynosure.storage.errors import FileMissing

REBASE: Final = "cynosure.commit.rebase-appends"
_ADDED_FILES: Final = "added-data-files"


def is_wanted(catalog: OpenCatalog, metadata: TableMetadata) -> bool:
    """Whether appends to this table may be moved."""
    asked = metadata.properties.get(REBASE, catalog.entity.properties.get(REBASE, "false"))
    return asked.strip().lower() == "true"


class Move:
    """One append that may have to be moved."""

    def __init__(
        self, append: AppendCommit, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
    ) -> None:
        self.append = append
        self.requirements = requirements
        self.updates = updates
        self._listed: tuple[ManifestFile, ...] | None = None

    def find_conflict(self, metadata: TableMetadata) -> Conflict | None:
        """Why it cannot be committed as it is; None when it was made for this very state."""
        try:
            check_requirements(metadata, self.requirements)
        except RequirementFailed as error:
            return error
        number = self.append.snapshot.value.sequence_number
        if metadata.format_version == 1 or number > metadata.last_sequence_number:
            return None
        return StaleSnapshot(
            "The snapshot was made for an earlier state", fix="Refresh the table and try again."
        )

    async def read(self, files: TableFiles, metadata: TableMetadata) -> None:
        """Read the client's list and manifests, ahead of `apply` where they are going to be needed."""
        path = self.append.snapshot.value.manifest_list
        if self._listed is None and path is not None:
            self._listed = await files.read_list(path)
            own = self._find_lines(metadata)
            if not isinstance(own, NotAnAppend):
                await files.load_all([line for _, line in own])

    async def read_ahead(self, files: TableFiles, metadata: TableMetadata) -> None:
        """As `read`, and no matter what is wrong: when it is needed, that is found out again."""
        try:
            await self.read(files, metadata)
        except CynosureError:
            return

    async def apply(self, catalog: OpenCatalog, draft: TableDraft) -> None:
        """Put it on the draft: as it is where it was made for that, else behind what is there."""
        conflict = self.find_conflict(draft.metadata)
        if conflict is None:
            draft.apply(self.updates)
            return
        if not is_wanted(catalog, draft.metadata):
            raise conflict
        check_requirements(draft.metadata, self.append.others)
        refusal = find_refusal(self.append, draft.metadata) or await self._move(draft)
        if refusal is not None:
            raise _explained(conflict, refusal)

    async def _move(self, draft: TableDraft) -> str | None:
        """Why it cannot be moved; `None` when it has been."""
        try:
            await self.read(draft.files, draft.metadata)
            own = await self._find_own(draft)
        except (InvalidManifest, LocationRefused, FileMissing, BadInput) as error:
            return f"its manifests cannot be read: {error.message}"
        if isinstance(own, NotAnAppend):
            return own.reason
        snapshot, metadata = self.append.snapshot, draft.metadata
        id_ = snapshot.value.snapshot_id
        made, kept = await draft.merge(own, await draft.load_head(self.append.branch), id_)
        make = partial(
            make_snapshot,
            metadata,
            branch=self.append.branch,
            snapshot_id=id_,
            own=made,
            kept=kept,
            list_path=draft.name_list(id_),
            summary={},
            template=snapshot.json,
            now_ms=draft.now_ms,
        )
        draft.add_snapshot(await off_loop(len(kept), make), self.append.branch)
        return None

    def _find_lines(self, metadata: TableMetadata) -> list[tuple[ManifestFile, ManifestFile]] | NotAnAppend:
        """The lines of the client's own manifests, each with the one that it is read with."""
        specs = {one.value.spec_id for one in metadata.partition_specs}
        own = find_own(self._listed or (), self.append.snapshot.value.snapshot_id, spec_ids=specs)
        if isinstance(own, NotAnAppend):
            return own
        return [(one, opened(one, format_version=metadata.format_version)) for one in own]

    async def _find_own(self, draft: TableDraft) -> list[ManifestFile] | NotAnAppend:
        metadata, snapshot = draft.metadata, self.append.snapshot.value
        listed, id_ = self._listed or (), snapshot.snapshot_id
        own = self._find_lines(metadata)
        if isinstance(own, NotAnAppend):
            return own
        parent = None
        if snapshot.parent_snapshot_id is not None:
            parent = metadata.find_snapshot(snapshot.parent_snapshot_id)
        if parent is not None or snapshot.parent_snapshot_id is None:
            # Of a parent that has been removed since, nobody can tell any more.
            before = () if parent is None else await draft.files.list_manifests(parent)
            if (difference := find_difference(listed, before, id_)) is not None:
                return difference
        there = {one.path for one in await draft.load_head(self.append.branch)}
        if there & {line.path for line, _ in own}:
            # A client that tries again under another snapshot id, with the manifests it has.
            return NotAnAppend("the branch has a manifest of the snapshot already")
        found: list[ManifestFile] = []
        version = metadata.format_version
        manifests = await draft.files.load_all([line for _, line in own])
        for (line, _), manifest in zip(own, manifests, strict=True):
            if (fault := find_fault(manifest, id_)) is not None:
                return fault
            if needs_rewrite(manifest, id_, format_version=version, listed=line):
                key = (line.path, id_, version)
                entries = added_entries(manifest, id_)
                make = partial(draft.make_manifest, line.spec_id, entries, id_, key=key)
                found.append(await off_loop(manifest.count, make))
            else:
                found.append(draft.carry(line, manifest))
        said = (snapshot.summary or {}).get(_ADDED_FILES)
        if said is not None and said != str(sum(one.added_files or 0 for one in found)):
            # Its client wrote some of them in a way that we do not see: they would be lost.
            return NotAnAppend("the snapshot adds another number of files than its summary says")
        return found


def _explained(conflict: Conflict, refusal: str) -> Conflict:
    """The conflict that the client expects, with the reason why it was not resolved."""
    return type(conflict)(
        conflict.message.removeprefix("Requirement failed: "),
        **{**conflict.details, "not_moved": refusal},
    )
