"""The next version of a view: exported, not committed yet.

Must not break: the metadata file exists before the commit that makes it reachable.
"""

from typing import NamedTuple

from cynosure.catalog.files.export import COMPRESSION, Export
from cynosure.catalog.locations import METADATA_PATH
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.opened import OpenCatalog
from cynosure.iceberg.views import ViewMetadata, encode_view
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


class ViewVersion(NamedTuple):
    """A prepared version of a view."""

    state_id: ObjId
    state: ViewState

    @property
    def ref(self) -> ObjRef:
        """Where the state is stored."""
        return ObjRef(self.state_id, VIEW.name)

    @property
    def value(self) -> bytes:
        """Of its entry in `names`."""
        return self.ref.pack()

    @property
    def new(self) -> NewObject:
        """To be written with the commit."""
        return NewObject(VIEW, self.state_id, self.state)


async def export_view(
    catalog: OpenCatalog,
    export: Export,
    metadata: ViewMetadata,
    *,
    entity_id: ObjId,
    claims: tuple[str, ...],
    base: ViewState | None = None,
) -> ViewVersion:
    """Write a version's file; `base` is the version before it."""
    persistence = catalog.shared.persistence
    state_id = persistence.ids.next()
    number = 0 if base is None else base.file_number + 1
    json = encode_view(metadata)
    properties = metadata.properties
    directory = properties.get(METADATA_PATH) or f"{metadata.location.rstrip('/')}/metadata"
    codec = properties.get(COMPRESSION, "none")
    metadata_location = await export.write(directory, json, number, state_id, codec=codec)
    now_us = persistence.clock.now_us()
    state = ViewState(
        id=entity_id,
        created_us=now_us if base is None else base.created_us,
        updated_us=now_us,
        metadata_location=metadata_location,
        file_number=number,
        location=metadata.location,
        json=json,
        claims=claims,
    )
    return ViewVersion(state_id, state)
