"""Create a view at the remote."""

import uuid
from typing import ClassVar

from msgspec import structs

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import changer_of, claim, places_of
from cynosure.catalog.guards import Guards
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import view_key
from cynosure.catalog.operations.create_view import CreateView
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_free_name, require_namespace, require_open
from cynosure.federation.mirror import prepare_view
from cynosure.federation.remote import RemoteView
from cynosure.federation.writes.abilities import require_name, require_views
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import find_view, look_at_name, look_at_namespace
from cynosure.federation.writes.placing import require_choosable
from cynosure.federation.writes.versions import version_of
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.views import ViewMetadata, new_view, read_version
from cynosure.persistence.commit import Prepared, State, View


async def create_view(scene: Scene, wanted: CreateView) -> ViewState:
    """See the native operation."""
    return (await carry_out(_Creation(scene, wanted))).value


class _Creation(Write[RemoteView, Version[ViewState]]):
    name: ClassVar[str] = ops.CREATE_VIEW.name

    def __init__(self, scene: Scene, wanted: CreateView) -> None:
        super().__init__(scene)
        self._wanted = wanted
        self._schema, self._version = read_schema(wanted.schema), read_version(wanted.version)
        check_reserved(wanted.properties)
        persistence = self.catalog.shared.persistence
        self._entity_id = persistence.ids.next()
        key = self.caller.key
        # Of a request with a key always the same, so that a view of an earlier attempt is known by it.
        own = uuid.UUID(int=persistence.rng.getrandbits(128), version=4)
        self._uuid = str(own) if key is None else key.derive()

    @property
    def recall(self) -> Recall[Version[ViewState]]:
        return RecalledVersion(VIEW)

    async def check(self, view: View) -> Guards:
        target = self.catalog.namespace(self._wanted.name.namespace)
        return await self.catalog.authorize(view, self.caller, ops.CREATE_VIEW, target)

    async def look(self) -> None:
        require_views(self.scene, self.name)
        require_name(self.scene, self._wanted.name)
        await look_at_namespace(self.scene, self._wanted.name.namespace)
        await look_at_name(self.scene, self._wanted.name)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        wanted, catalog = self._wanted, self.catalog
        await require_namespace(view, wanted.name.namespace)
        await require_free_name(view, wanted.name, for_view=True)
        location = wanted.location or f"{catalog.base.text}/{self._entity_id:x}"
        places = places_of(catalog, location, wanted.properties)
        own = None if wanted.location else Held(self._entity_id, location, ())
        await require_choosable(self.scene, view, wanted.name.namespace, places, held=own)
        await claim(view, changer_of(catalog, self.caller, self._entity_id), places)
        return Before()

    async def send(self, key: str | None) -> RemoteView:
        return await self.remote.create_view(self._wanted.name, self._build(), key=key)

    async def find(self, before: Before) -> RemoteView | Again | None:
        found = await find_view(self.scene, self._wanted.name)
        if found is None:
            return AGAIN
        return found if found.metadata.view_uuid == self._uuid else None

    async def keep(self, view: View, answer: RemoteView) -> Prepared[Version[ViewState]]:
        name = self._wanted.name
        prepared = await prepare_view(self.catalog, self.caller, view, name, answer)
        version = await version_of(view, prepared, view_key(name))
        return Prepared(version, prepared.changes, prepared.objects, prepared.feed)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.note(self.catalog, view_key(self._wanted.name), asked_s)

    def _build(self) -> ViewMetadata:
        """What is asked for; `BadInput` when it makes no view."""
        wanted = self._wanted
        metadata = new_view(
            view_uuid=self._uuid,
            location=(wanted.location or self.catalog.base.text).rstrip("/"),
            schema=self._schema,
            version=self._version,
            properties=wanted.properties,
            now_ms=self.catalog.shared.persistence.clock.now_us() // 1000,
            limits=self.catalog.limits,
        )
        # Without a location of the client's the remote chooses: so each attempt asks for the very same.
        return metadata if wanted.location is not None else structs.replace(metadata, location="")
