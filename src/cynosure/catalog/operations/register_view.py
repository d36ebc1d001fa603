"""Make a view of a metadata file that exists. The file stays where it is and is not written again."""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.claims import Places, changer_of, claim, join_places, require_free
from cynosure.catalog.file_references import is_inside_table
from cynosure.catalog.files.importing import file_number_of, read_metadata_file
from cynosure.catalog.files.view_versions import ViewVersion
from cynosure.catalog.locations import check_allowed, check_paths
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_view import prepared_creation
from cynosure.catalog.properties import check_ours
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_free_name, require_namespace, require_open
from cynosure.iceberg.views import ViewMetadata, encode_view, parse_view
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.spi import ObjId


async def register_view(
    catalog: OpenCatalog, caller: Caller, name: Identifier, metadata_location: str
) -> ViewState:
    """Register it. `ViewExists` or `TableExists` when the name is taken."""
    target, recall = catalog.namespace(name.namespace), RecalledVersion(VIEW)
    check = catalog.checking(caller, ops.REGISTER_VIEW, target)
    recalled = await find_recalled(catalog.committer, caller, check=check, recall=recall)
    if recalled is not None:
        return recalled.result.value
    async with refusing(catalog.committer, caller, ops.REGISTER_VIEW.name):
        before = await catalog.read()
        await check(before)
        end_rehearsal(caller)
        version, places = await _load_version(catalog, caller, before, name, metadata_location)

    async def prepare(view: View) -> Prepared[Version[ViewState]]:
        await require_open(view)
        await _require_place(view, name)
        claimed = await claim(view, changer_of(catalog, caller, version.state.id), places)
        return prepared_creation(name, version, claimed)

    return (await catalog.commit(caller, ops.REGISTER_VIEW, (target,), prepare, recall)).result.value


async def _load_version(
    catalog: OpenCatalog, caller: Caller, view: View, name: Identifier, metadata_location: str
) -> tuple[ViewVersion, Places]:
    """The view that a file is of, and what it holds, if all that it says may be so in this catalog."""
    persistence = catalog.shared.persistence
    # Order: the name first, so that a taken one is not answered with what is wrong with the file.
    await _require_place(view, name)
    entity_id, state_id = persistence.ids.next(), persistence.ids.next()
    metadata, places = await load_registrable_view(catalog, caller, view, entity_id, metadata_location)
    now_us = persistence.clock.now_us()
    state = ViewState(
        id=entity_id,
        created_us=now_us,
        updated_us=now_us,
        metadata_location=metadata_location,
        file_number=file_number_of(metadata_location),
        location=metadata.location,
        json=encode_view(metadata),
        claims=places.claims,
    )
    return ViewVersion(state_id, state), places


async def load_registrable_view(
    catalog: OpenCatalog, caller: Caller, view: View, entity_id: ObjId, metadata_location: str
) -> tuple[ViewMetadata, Places]:
    """What a file says that is to be registered, and what a view of it holds, if it may be so here."""
    file = check_allowed(catalog, metadata_location, field="metadata-location")
    await require_free(view, file, changer_of(catalog, caller, entity_id))  # Before it is read.
    metadata = parse_view(await read_metadata_file(catalog, file), limits=catalog.limits)
    location = check_allowed(catalog, metadata.location, field="location")
    check_ours(metadata.properties)
    others = check_paths(catalog, metadata.properties)
    if not is_inside_table(catalog, location, metadata.properties, metadata_location):
        others.append(file)
    return metadata, join_places(location, others)


async def _require_place(view: View, name: Identifier) -> None:
    await require_namespace(view, name.namespace)
    await require_free_name(view, name, for_view=True)
