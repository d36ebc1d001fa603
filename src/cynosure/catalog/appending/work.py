"""One change of a table for all who append to it at the moment.

Files that were sent to the append endpoint become one snapshot; standard commits keep a snapshot each, as
their clients look for it. All of it is one version of the table: one metadata file, one commit.

Must not break: what cannot be put on the draft leaves nothing there.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.catalog.appending.addition import Addition, check_absent
from cynosure.catalog.appending.draft import TableDraft, Written, off_loop, run_all
from cynosure.catalog.appending.moving import Move
from cynosure.catalog.files.export import Export
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.catalog.table_changes import Applied, Changed, TableChange, load_base, prepare_changed
from cynosure.common.errors import CynosureError
from cynosure.iceberg.appending.snapshot import NewSnapshot, make_snapshot
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.persistence.commit import Prepared, View


class Appended(Struct, frozen=True, rename="kebab"):
    """What the append endpoint answers."""

    snapshot_id: int
    sequence_number: int
    """0 in tables of format version 1."""
    schema_id: int
    metadata_location: str
    added_files: int
    """By this request; the snapshot may have those of others too."""
    added_records: int


Asked = Addition | Move


class Outcome(NamedTuple):
    """What became of one append."""

    changed: Changed | None
    """The table after it; `None` when it is recalled by what was answered."""
    appended: Appended | None = None
    """Of files that were sent to be added."""


class AppendWork:
    """One attempt to commit some appends to a table, on whatever states it takes."""

    def __init__(self, catalog: OpenCatalog, table: Identifier, export: Export) -> None:
        self._catalog = catalog
        self._table = table
        self._export = export
        self._written = Written()
        self._ids: dict[tuple[Addition, ...], int] = {}
        """Ids of our snapshots, by whose files they have: manifests name the snapshot that added them."""

    async def prepare(
        self, view: View, caller: Caller, asked: Sequence[Asked], *, is_alone: bool
    ) -> tuple[Prepared[Changed], dict[Asked, Outcome]]:
        """The change, and what it does for each of those that were put into it.

        Alone, an error is the answer; with others, it leaves one out.
        """
        await require_open(view)
        ref = await require_table_ref(view, self._table)
        base = await load_base(self._catalog, view, self._table, ref)
        now_ms = self._catalog.shared.persistence.clock.now_us() // 1000
        draft = TableDraft(self._catalog, base, self._written, now_ms=now_ms)
        added = await self._add(draft, asked, is_alone=is_alone)
        moved = await self._move(draft, asked, is_alone=is_alone)
        change = TableChange(self._table, (), draft.updates)
        applied = Applied(change, ref, base, draft.metadata)
        # Side by side: the metadata file names the lists, and nobody reads it before the commit.
        new_files, prepared = await run_all(
            draft.write(self._export),
            prepare_changed(self._catalog, caller, self._export, view, applied),
        )
        changed = replace(prepared.result, new_files=new_files)
        results: dict[Asked, Outcome] = dict.fromkeys(moved, Outcome(changed))
        results |= {one: Outcome(changed, each.answer(changed.table)) for one, each in added.items()}
        return prepared, results

    async def _add(
        self, draft: TableDraft, asked: Sequence[Asked], *, is_alone: bool
    ) -> "Mapping[Addition, _Added]":
        kinds: dict[object, list[Addition]] = {}
        for one in asked:
            if isinstance(one, Addition):
                kinds.setdefault(one.kind, []).append(one)
        added: dict[Addition, _Added] = {}
        for same in kinds.values():
            files = await _load_files(draft, same, is_alone=is_alone)
            if files:
                snapshot = await self._make_snapshot(draft, files)
                added |= {one: _Added(snapshot, some) for one, some in files.items()}
        return added

    async def _make_snapshot(
        self, draft: TableDraft, files: Mapping[Addition, Sequence[ContentFile]]
    ) -> NewSnapshot:
        these = tuple(files)
        branch = these[0].branch
        snapshot_id = self._ids.get(these)
        if snapshot_id is None or snapshot_id in draft.metadata.snapshots:
            snapshot_id = self._ids[these] = make_snapshot_id()
        by_spec: dict[int, list[ContentFile]] = {}
        for file in (file for some in files.values() for file in some):
            by_spec.setdefault(file.spec_id, []).append(file)
        new = []
        for spec_id, some in sorted(by_spec.items()):
            entries = [Entry(Status.ADDED, snapshot_id, None, None, file) for file in some]
            key = (snapshot_id, spec_id, draft.metadata.format_version)
            write = partial(draft.make_manifest, spec_id, entries, snapshot_id, key=key)
            new.append(await off_loop(len(entries), write))
        made, kept = await draft.merge(new, await draft.load_head(branch), snapshot_id)
        make = partial(
            make_snapshot,
            draft.metadata,
            branch=branch,
            snapshot_id=snapshot_id,
            own=made,
            kept=kept,
            list_path=draft.name_list(snapshot_id),
            summary=these[0].summary,
            added_size_bytes=sum(file.file_size_bytes for some in files.values() for file in some),
            now_ms=draft.now_ms,
        )
        snapshot = await off_loop(len(kept), make)
        draft.add_snapshot(snapshot, branch)
        return snapshot

    async def _move(self, draft: TableDraft, asked: Sequence[Asked], *, is_alone: bool) -> list[Move]:
        moves = [one for one in asked if isinstance(one, Move)]
        if not is_alone:
            # Nearly all of them will be moved, so their lists are read side by side.
            await run_all(*(one.read_ahead(draft.files, draft.metadata) for one in moves))
        moved: list[Move] = []
        for one in moves:
            try:
                await one.apply(self._catalog, draft)
            except CynosureError:
                if is_alone:
                    raise
            else:
                moved.append(one)
        return moved


class _Added(NamedTuple):
    """What became of one request's files."""

    snapshot: NewSnapshot
    files: Sequence[ContentFile]

    def answer(self, table: ManagedTable) -> Appended:
        return Appended(
            snapshot_id=self.snapshot.snapshot_id,
            sequence_number=self.snapshot.sequence_number,
            schema_id=table.metadata.current_schema_id,
            metadata_location=table.state.metadata_location,
            added_files=len(self.files),
            added_records=sum(file.record_count for file in self.files),
        )


def make_snapshot_id() -> int:
    """An id that nobody else chooses: as Iceberg's own writers make them."""
    number = uuid4().int
    return ((number >> 64) ^ number) & (2**63 - 1)


async def _load_files(
    draft: TableDraft, asked: Sequence[Addition], *, is_alone: bool
) -> dict[Addition, tuple[ContentFile, ...]]:
    """The files of those that can be added, none of them twice."""
    found: dict[Addition, tuple[ContentFile, ...]] = {}
    taken: set[str] = set()
    for one in asked:
        try:
            files = await one.load_files(draft)
            paths = [file.path for file in files]
            await check_absent(draft, one, paths)
        except CynosureError:
            if is_alone:
                raise
            continue
        if taken.isdisjoint(paths):
            # Else another one has just added the same file: alone it will be told that it is there.
            taken.update(paths)
            found[one] = files
    return found
