"""Commit changes to several tables of the remote, all or none."""

from collections.abc import Sequence
from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING, Recall
from cynosure.catalog.guards import Guards
from cynosure.catalog.operations.commit_transaction import authorize_all, check_changes
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import CynosureError
from cynosure.federation.remote import RemoteTable
from cynosure.federation.writes.abilities import require_transactions
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.commit_table import (
    judge_change,
    judge_outcome,
    keep_changed,
    known_commit,
    look_at_changed,
    note_table,
    plain_commit,
)
from cynosure.federation.writes.looking import find_table
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Change, Prepared, State, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.store import NewObject

_Answers = list[RemoteTable | None]


async def commit_transaction(scene: Scene, changes: Sequence[TableChange]) -> None:
    """See the native operation."""
    check_changes(changes)
    await carry_out(_Transaction(scene, changes))


class _Transaction(Write[_Answers, None]):
    """What the remote answers is nothing: the tables are what it has afterwards, as far as it says."""

    name: ClassVar[str] = ops.COMMIT_TRANSACTION.name

    def __init__(self, scene: Scene, changes: Sequence[TableChange]) -> None:
        super().__init__(scene)
        self._changes = changes
        self._commits = [plain_commit(each) for each in changes]

    @property
    def recall(self) -> Recall[None]:
        return NOTHING

    async def check(self, view: View) -> Guards:
        return await authorize_all(self.catalog, self.caller, view, self._changes)

    async def look(self) -> None:
        for change in self._changes:
            await look_at_changed(self.scene, change)
        # Behind the first look: before it was asked anything, a remote does not say what it can.
        require_transactions(self.scene, self.name)

    async def judge(self, view: State) -> Before:
        self._commits = [await known_commit(self.scene, view, each) for each in self._changes]
        for change in self._changes:
            await judge_change(self.scene, view, change)
        return Before()

    async def send(self, key: str | None) -> _Answers:
        await self.remote.commit_transaction(self._commits, key=key)
        return [await self._load(each) for each in self._changes]

    async def find(self, before: Before) -> _Answers | Again | None:
        found = [await find_table(self.scene, each.table) for each in self._changes]
        verdicts = [
            judge_outcome(change, now, before) for change, now in zip(self._changes, found, strict=True)
        ]
        if all(each is True for each in verdicts):
            return found
        return AGAIN if all(each is AGAIN for each in verdicts) else None

    async def keep(self, view: View, answer: _Answers) -> Prepared[None]:
        overlay = Overlay(view)
        objects: list[NewObject] = []
        feed: list[Change] = []
        for change, commit, table in zip(self._changes, self._commits, answer, strict=True):
            if table is None:
                continue
            prepared = await keep_changed(self.scene, overlay, change, commit, table)
            overlay.add(prepared.changes, prepared.objects)
            objects += prepared.objects
            feed += prepared.feed
        return Prepared(None, overlay.changes, objects, feed)

    def note(self, asked_s: float) -> None:
        for change in self._changes:
            note_table(self.scene, change, asked_s)

    async def _load(self, change: TableChange) -> RemoteTable | None:
        """The table after the transaction; `None` when the remote does not say: the next look will."""
        try:
            return await find_table(self.scene, change.table)
        except CynosureError:
            return None
