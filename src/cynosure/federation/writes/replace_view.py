"""Commit changes to a view of the remote."""

from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import changer_of, claim, places_of
from cynosure.catalog.guards import Guards
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import view_key
from cynosure.catalog.operations.replace_view import ViewChange, apply_view_change, check_reserved_in
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_open, require_view_ref
from cynosure.federation.mirror import prepare_view
from cynosure.federation.mirror.seen import is_same
from cynosure.federation.remote import RemoteView, ViewCommit
from cynosure.federation.writes.abilities import require_views
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import before_of, find_view, load_known_view, look_at_view
from cynosure.federation.writes.placing import require_choosable
from cynosure.federation.writes.versions import version_of
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.iceberg.views import check_view_requirements, parse_view
from cynosure.iceberg.views.requirements import AssertViewUuid
from cynosure.persistence.commit import Prepared, State, View


async def replace_view(scene: Scene, change: ViewChange) -> ViewState:
    """See the native operation."""
    check_reserved_in(change)
    return (await carry_out(_Replacement(scene, change))).value


class _Replacement(Write[RemoteView, Version[ViewState]]):
    name: ClassVar[str] = ops.REPLACE_VIEW.name

    def __init__(self, scene: Scene, change: ViewChange) -> None:
        super().__init__(scene)
        self._change = change
        self._commit = ViewCommit(view=change.name, requirements=change.requirements, updates=change.updates)

    @property
    def recall(self) -> Recall[Version[ViewState]]:
        return RecalledVersion(VIEW)

    async def check(self, view: View) -> Guards:
        target = self.catalog.view(self._change.name)
        return await self.catalog.authorize(view, self.caller, ops.REPLACE_VIEW, target)

    async def look(self) -> None:
        require_views(self.scene, self.name)
        await look_at_view(self.scene, self._change.name)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        change, catalog = self._change, self.catalog
        ref = await require_view_ref(view, change.name)
        known = await load_known_view(self.scene, view, change.name)
        if known is not None:
            # Of the very view that the caller's rights were found on; also when it is refused below.
            own = AssertViewUuid(known.metadata.view_uuid)
            self._commit = ViewCommit(
                view=change.name,
                requirements=change.requirements or (own,),
                updates=change.updates,
                base=known,
            )
        (base,) = await view.load_many(VIEW, [ref.id])
        metadata = parse_view(base.json, limits=catalog.limits)
        check_view_requirements(metadata, change.requirements)
        after = apply_view_change(catalog, metadata, change)
        held = Held(base.id, base.location, base.claims)
        places = places_of(catalog, after.location, after.properties, former=held, field="updates.location")
        await require_choosable(self.scene, view, change.name.namespace, places, held=held)
        # Only asked for: what the view holds is claimed by what the remote answers.
        await claim(view, changer_of(catalog, self.caller, base.id), places, before=held)
        return Before() if known is None else before_of(known)

    async def send(self, key: str | None) -> RemoteView:
        return await self.remote.commit_view(self._commit, key=key)

    async def find(self, before: Before) -> RemoteView | Again | None:
        found = await find_view(self.scene, self._change.name)
        if found is None or found.uuid != before.uuid:
            return None
        # A version of a view has no id of its client's: it is known to be unchanged, or nothing is known.
        return AGAIN if is_same(found.tag, before.tag) else None

    async def keep(self, view: View, answer: RemoteView) -> Prepared[Version[ViewState]]:
        name = self._change.name
        prepared = await prepare_view(self.catalog, self.caller, view, name, answer)
        version = await version_of(view, prepared, view_key(name))
        return Prepared(version, prepared.changes, prepared.objects, prepared.feed)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.note(self.catalog, view_key(self._change.name), asked_s)
