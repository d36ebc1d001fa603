"""Register a metadata file as a view of the remote.

Must not break: as for tables, the file is read and judged here first, by the rules of this catalog, and not
even read where the caller may not choose places.
"""

from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import Places, changer_of, claim
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_allowed
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.operations.register_view import load_registrable_view
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_free_name, require_namespace, require_open
from cynosure.federation.mirror import prepare_view
from cynosure.federation.remote import RemoteView
from cynosure.federation.writes.abilities import require_name, require_view_registration
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import find_view, look_at_name, look_at_namespace
from cynosure.federation.writes.placing import require_choosable
from cynosure.federation.writes.versions import version_of
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View


async def register_view(scene: Scene, name: Identifier, metadata_location: str) -> ViewState:
    """See the native operation."""
    return (await carry_out(_Registration(scene, name, metadata_location))).value


class _Registration(Write[RemoteView, Version[ViewState]]):
    name: ClassVar[str] = ops.REGISTER_VIEW.name

    def __init__(self, scene: Scene, view: Identifier, metadata_location: str) -> None:
        super().__init__(scene)
        self._view = view
        self._location = metadata_location

    @property
    def recall(self) -> Recall[Version[ViewState]]:
        return RecalledVersion(VIEW)

    async def check(self, view: View) -> Guards:
        target = self.catalog.namespace(self._view.namespace)
        return await self.catalog.authorize(view, self.caller, ops.REGISTER_VIEW, target)

    async def look(self) -> None:
        require_view_registration(self.scene, self.name)
        require_name(self.scene, self._view)
        await look_at_namespace(self.scene, self._view.namespace)
        await look_at_name(self.scene, self._view)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        catalog, namespace = self.catalog, self._view.namespace
        await require_namespace(view, namespace)
        await require_free_name(view, self._view, for_view=True)
        # Twice: before the file is read, and for what it says.
        place = Places(check_allowed(catalog, self._location, field="metadata-location"))
        await require_choosable(self.scene, view, namespace, place)
        entity_id = catalog.shared.persistence.ids.next()
        _, places = await load_registrable_view(catalog, self.caller, view, entity_id, self._location)
        await require_choosable(self.scene, view, namespace, places)
        await claim(view, changer_of(catalog, self.caller, entity_id), places)
        return Before()

    async def send(self, key: str | None) -> RemoteView:
        return await self.remote.register_view(self._view, self._location, key=key)

    async def find(self, before: Before) -> RemoteView | Again | None:
        found = await find_view(self.scene, self._view)
        if found is None:
            return AGAIN
        return found if found.tag.metadata_location == self._location else None

    async def keep(self, view: View, answer: RemoteView) -> Prepared[Version[ViewState]]:
        prepared = await prepare_view(self.catalog, self.caller, view, self._view, answer)
        version = await version_of(view, prepared, view_key(self._view))
        return Prepared(version, prepared.changes, prepared.objects, prepared.feed)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.note(self.catalog, view_key(self._view), asked_s)
