"""Commit changes to a table of the remote, or create it there.

Must not break: the remote decides on the requirements. What is judged here before is the same, on the version
that the remote had a moment ago, so that what cannot be is refused in the words of a native catalog.
"""

from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import Claimed, Places, changer_of
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import parse_place
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import table_key
from cynosure.catalog.operations.commit_table import authorization_of, check_reserved_in, find_promised
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import (
    find_table_ref,
    require_free_name,
    require_namespace,
    require_open,
    require_table_ref,
)
from cynosure.catalog.staged import removing
from cynosure.catalog.table_changes import TableChange, apply_change, claim_places
from cynosure.federation.mirror import prepare_table
from cynosure.federation.mirror.seen import ANYTHING, Expected, find_seen
from cynosure.federation.remote import RemoteTable, TableCommit
from cynosure.federation.writes.abilities import require_name
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import (
    before_of,
    find_table,
    load_known_table,
    look_at_name,
    look_at_namespace,
    look_at_table,
)
from cynosure.federation.writes.outcomes import judge_commit, judge_creation
from cynosure.federation.writes.placing import require_choosable
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import AssertTableUuid, check_requirements
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.commit.view import Overlay


async def commit_table(scene: Scene, change: TableChange) -> TableAnswer:
    """See the native operation. Appends are not moved: the remote would have to do that."""
    check_reserved_in(change)
    return (await carry_out(_Commit(scene, change))).answer()


class _Commit(Write[RemoteTable, ManagedTable]):
    name: ClassVar[str] = ops.COMMIT_TABLE.name

    def __init__(self, scene: Scene, change: TableChange) -> None:
        super().__init__(scene)
        self._change = change
        self._operation, self._target = authorization_of(scene.catalog, change)
        self._commit = plain_commit(change)

    @property
    def recall(self) -> Recall[ManagedTable]:
        return RecalledTable(self.catalog, self.caller, self._operation, self._change.table)

    async def check(self, view: View) -> Guards:
        return await self.catalog.authorize(view, self.caller, self._operation, self._target)

    async def look(self) -> None:
        await look_at_changed(self.scene, self._change)

    async def judge(self, view: State) -> Before:
        # Also when it is refused below: a repeated request is asked for in the very same words.
        self._commit = await known_commit(self.scene, view, self._change)
        return await judge_change(self.scene, view, self._change)

    async def send(self, key: str | None) -> RemoteTable:
        return await self.remote.commit_table(self._commit, key=key)

    async def find(self, before: Before) -> RemoteTable | Again | None:
        found = await find_table(self.scene, self._change.table)
        verdict = judge_outcome(self._change, found, before)
        return found if verdict is True else AGAIN if verdict is AGAIN else None

    async def keep(self, view: View, answer: RemoteTable) -> Prepared[ManagedTable]:
        return await keep_changed(self.scene, view, self._change, self._commit, answer)

    def note(self, asked_s: float) -> None:
        note_table(self.scene, self._change, asked_s)


def plain_commit(change: TableChange) -> TableCommit:
    """A change as it is sent where nothing is known of the table."""
    return TableCommit(table=change.table, requirements=change.requirements, updates=change.updates)


async def known_commit(scene: Scene, view: View, change: TableChange) -> TableCommit:
    """A change as it is sent: to the very table that the caller's rights were found on, or to none."""
    known = None if change.is_creation else await load_known_table(scene, view, change.table)
    if known is None:
        return plain_commit(change)
    requirements = change.requirements
    if not any(isinstance(each, AssertTableUuid) for each in requirements):
        requirements = (AssertTableUuid(known.metadata.table_uuid), *requirements)
    return TableCommit(table=change.table, requirements=requirements, updates=change.updates, base=known)


async def look_at_changed(scene: Scene, change: TableChange) -> None:
    """Have what a change is about as the remote has it."""
    if not change.is_creation:
        await look_at_table(scene, change.table)
        return
    require_name(scene, change.table)
    await look_at_namespace(scene, change.table.namespace)
    await look_at_name(scene, change.table)


async def judge_change(scene: Scene, view: State, change: TableChange) -> Before:
    """Refuse a change that a native table would refuse."""
    await require_open(view)
    if change.is_creation:
        await _judge_creation(scene, view, change)
        return Before()
    catalog, table = scene.catalog, change.table
    ref = await require_table_ref(view, table)
    known = await load_known_table(scene, view, table)
    base = await load_table_at(view, ref.id, catalog.shared.tables)
    check_requirements(base.metadata, change.requirements)
    metadata = apply_change(catalog, base.metadata, change)
    if metadata is not base.metadata:
        await catalog.restrictions.check_schema_change(view, catalog.table(table), base.metadata, metadata)
        held = Held(base.state.id, base.state.location, base.state.claims)
        # Only asked for: what the table holds is claimed by what the remote answers.
        claimant = changer_of(catalog, scene.caller, held.id)
        claimed = await claim_places(catalog, view, change, metadata, claimant, before=held)
        places = _places_of(metadata, claimed)
        await require_choosable(scene, view, table.namespace, places, held=held)
    return Before() if known is None else before_of(known)


async def _judge_creation(scene: Scene, view: State, change: TableChange) -> None:
    catalog, caller, table = scene.catalog, scene.caller, change.table
    await require_namespace(view, table.namespace)
    if await find_table_ref(view, table) is not None:
        raise RequirementFailed("table already exists")
    await require_free_name(view, table, for_view=False)
    check_requirements(None, change.requirements)
    metadata = apply_change(catalog, None, change)
    staged = await find_promised(view, caller, table, metadata)
    entity_id = catalog.shared.persistence.ids.next() if staged is None else staged.id
    before = None if staged is None else staged.held
    claimant = changer_of(catalog, caller, entity_id)
    claimed = await claim_places(catalog, view, change, metadata, claimant, before=before)
    await require_choosable(scene, view, table.namespace, _places_of(metadata, claimed), held=before)


def _places_of(metadata: TableMetadata, claimed: Claimed) -> Places:
    return Places(parse_place(metadata.location), tuple(parse_place(text) for text in claimed.claims))


def judge_outcome(change: TableChange, found: RemoteTable | None, before: Before) -> bool | Again | None:
    """Whether a change is in what the remote has now."""
    if found is None:
        # A creation cannot be done twice; a table that is gone cannot be changed any more, nor asked about.
        return AGAIN if change.is_creation else None
    return judge_creation(change, found) if change.is_creation else judge_commit(change, found, before)


async def keep_changed(
    scene: Scene, view: View, change: TableChange, commit: TableCommit, answer: RemoteTable
) -> Prepared[ManagedTable]:
    """The change of the mirror that a commit's answer makes; what was reserved for a creation is given up."""
    catalog, caller, table = scene.catalog, scene.caller, change.table
    if not change.is_creation:
        expected = await _find_expected(scene, view, commit)
        return await prepare_table(catalog, caller, view, table, answer, expected=expected)
    staged = await find_promised(view, caller, table, answer.metadata)
    if staged is None:
        return await prepare_table(catalog, caller, view, table, answer)
    overlay = Overlay(view)
    overlay.add(removing(staged))
    prepared = await prepare_table(catalog, caller, overlay, table, answer)
    overlay.add(prepared.changes, prepared.objects)
    return Prepared(prepared.result, overlay.changes, prepared.objects, prepared.feed)


async def _find_expected(scene: Scene, view: View, commit: TableCommit) -> Expected:
    """What the mirror has, if the commit was sent for that: then the answer is later, whatever clocks say."""
    seen, base, key = await find_seen(view, table_key(commit.table)), commit.base, scene.caller.key
    # What a remote answers to a repeated request may be as old as the first one.
    is_repeat = key is not None and key.is_repeat
    if is_repeat or seen is None or base is None or not seen.is_of(base.tag, base.uuid):
        return ANYTHING
    return seen


def note_table(scene: Scene, change: TableChange, asked_s: float) -> None:
    """Remember when the remote was heard of it."""
    scene.federation.freshness.note(scene.catalog, table_key(change.table), asked_s)
