"""Make a view of a metadata file that exists. The file stays where it is and is not written again."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.files.importing import file_number_of, read_metadata_file
from cynosure.catalog.files.view_versions import ViewVersion
from cynosure.catalog.locations import check_allowed, check_property_locations, claim_location
from cynosure.catalog.managed.view_state import ViewState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_view import prepared_creation
from cynosure.catalog.properties import check_ours
from cynosure.catalog.resolve import require_free_name, require_namespace, require_open
from cynosure.iceberg.views import encode_view, parse_view
from cynosure.persistence.commit import Prepared, View


async def register_view(
    catalog: OpenCatalog, caller: Caller, name: Identifier, metadata_location: str
) -> ViewState:
    """Register it. `ViewExists` or `TableExists` when the name is taken."""
    persistence = catalog.shared.persistence
    # Order: the name first, so that a taken one is not answered with what is wrong with the file.
    before, target = await catalog.read(), catalog.namespace(name.namespace)
    await catalog.authorize(before, caller, ops.REGISTER_VIEW, target)
    await _require_place(before, name)
    file = check_allowed(catalog, metadata_location, field="metadata-location")
    metadata = parse_view(await read_metadata_file(catalog, file), limits=catalog.limits)
    location = check_allowed(catalog, metadata.location, field="location")
    check_property_locations(catalog, metadata.properties)
    check_ours(metadata.properties)
    entity_id, state_id = persistence.ids.next(), persistence.ids.next()
    now_us = persistence.clock.now_us()
    state = ViewState(
        id=entity_id,
        created_us=now_us,
        updated_us=now_us,
        metadata_location=metadata_location,
        file_number=file_number_of(metadata_location),
        location=metadata.location,
        json=encode_view(metadata),
    )

    async def prepare(view: View) -> Prepared[ViewState]:
        await require_open(view)
        await _require_place(view, name)
        claims = await claim_location(view, location, entity_id)
        return prepared_creation(name, ViewVersion(state_id, state), claims)

    return (await catalog.commit(caller, ops.REGISTER_VIEW, (target,), prepare)).result


async def _require_place(view: View, name: Identifier) -> None:
    await require_namespace(view, name.namespace)
    await require_free_name(view, name, for_view=True)
