"""Create a generic table, with access to its files when that is asked for.

Must not break: the base location is validated and claimed, in a commit, before credentials for it are made.
"""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part, end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.changes import merge
from cynosure.catalog.claims import Places, changer_of, claim
from cynosure.catalog.entities import GENERIC_TABLE, GenericTableEntity
from cynosure.catalog.generic.access import StorageAccess, give_generic_access, require_vending
from cynosure.catalog.generic.drop_generic_table import prepare_generic_drop
from cynosure.catalog.generic.load_generic_table import LoadedGenericTable, load_generic_table
from cynosure.catalog.locations import check_allowed
from cynosure.catalog.names import Identifier, generic_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_properties, check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_free_generic_name, require_namespace, require_open
from cynosure.common.errors import BadInput, CynosureError, Forbidden, NotFound, OutcomeUnknown
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject
from cynosure.storage.errors import StorageRefused

MAX_FORMAT_CHARS = 256


class CreateGenericTable(Struct, frozen=True):
    """What a client wants created."""

    name: Identifier
    format: str
    location: str = ""
    """Empty: its users keep track of its files, and no access can be given."""
    doc: str | None = None
    properties: dict[str, str] = {}


async def create_generic_table(
    catalog: OpenCatalog, caller: Caller, wanted: CreateGenericTable, *, is_delegated: bool = False
) -> LoadedGenericTable:
    """Create it. `GenericTableExists`, `TableExists` or `ViewExists` when the name is taken.

    `is_delegated`: the client wants to write with the credentials it is given, so it must be allowed to.
    """
    _check(catalog, wanted)
    operation = ops.CREATE_GENERIC_TABLE_DELEGATED if is_delegated else ops.CREATE_GENERIC_TABLE
    target = catalog.namespace(wanted.name.namespace)
    recall = RecalledVersion(GENERIC_TABLE)
    if is_delegated:
        check = catalog.checking(caller, operation, target)
        recalled = await find_recalled(catalog.committer, caller, check=check, recall=recall)
        if recalled is not None:
            return await _give_again(catalog, caller, wanted.name, recalled.result.value)
        async with refusing(catalog.committer, caller, operation.name):
            # Before anything is made; and again when it is.
            await check(await catalog.read())
            end_rehearsal(caller)
            require_vending(catalog, wanted.location)
    persistence = catalog.shared.persistence
    entity = GenericTableEntity(
        id=persistence.ids.next(),
        format=wanted.format,
        created_us=persistence.clock.now_us(),
        location=wanted.location,
        doc=wanted.doc,
        properties=dict(wanted.properties),
    )

    async def prepare(view: View) -> Prepared[Version[GenericTableEntity]]:
        return await _prepare_creation(catalog, caller, view, wanted.name, entity)

    created = (await catalog.commit(caller, operation, (target,), prepare, recall)).result.value
    if not is_delegated:
        return LoadedGenericTable(wanted.name, created)
    if caller.key is not None and caller.key.is_recalled:
        return await _give_again(catalog, caller, wanted.name, created)
    return LoadedGenericTable(wanted.name, created, await _give(catalog, caller, wanted.name, created))


def _check(catalog: OpenCatalog, wanted: CreateGenericTable) -> None:
    if not wanted.format.strip() or len(wanted.format) > MAX_FORMAT_CHARS:
        raise BadInput(
            "The format is empty or too long",
            field="format",
            fix=f"Name the table's format in 1 to {MAX_FORMAT_CHARS} characters, such as delta.",
        )
    check_reserved(wanted.properties)
    sizes = catalog.shared.settings.sizes
    check_properties(wanted.properties, sizes)
    check_properties({"doc": wanted.doc or ""}, sizes, field="doc")


async def _prepare_creation(
    catalog: OpenCatalog, caller: Caller, view: View, name: Identifier, entity: GenericTableEntity
) -> Prepared[Version[GenericTableEntity]]:
    await require_open(view)
    await require_namespace(view, name.namespace)
    await require_free_generic_name(view, name)
    ref = ObjRef(entity.id, GENERIC_TABLE.name)
    key, value = generic_key(name), ref.pack()
    changes: dict[str, dict[bytes, bytes | None]] = {
        "names": {key: value},
        "ids": {encode_id_key(entity.id): key},
    }
    if entity.location:
        location = check_allowed(catalog, entity.location, field="base-location")
        claimant = changer_of(catalog, caller, entity.id)
        merge(changes, (await claim(view, claimant, Places(location))).changes)
    detail = raw_detail({"id": entity.id, "path": (*name.namespace, name.name)})
    feed = Change(kind="generic-table-created", index="names", key=key, after=value, detail=detail)
    return Prepared(Version(ref, entity), changes, [NewObject(GENERIC_TABLE, entity.id, entity)], [feed])


async def _give(
    catalog: OpenCatalog, caller: Caller, name: Identifier, entity: GenericTableEntity
) -> tuple[StorageAccess, ...]:
    """Access to the new table; without it, the table goes again, because the whole request fails.

    Not that of a request with a key: it is in the chain under it, and the next attempt is given access to it.
    """
    try:
        return await give_generic_access(catalog, caller, name, entity, is_writable=True)
    except CynosureError as refusal:
        if caller.key is not None:
            raise OutcomeUnknown(
                "The generic table was created, and no access could be given",
                fix="Send the request again with the same Idempotency-Key, or drop the table.",
                table=str(name),
                reason=refusal.message,
            ) from refusal
        try:
            await _undo(catalog, caller, name, entity)
        except CynosureError as failure:
            raise OutcomeUnknown(
                "The generic table was created, no access could be given, and it may still be there",
                fix="Load it, and drop it if it is not wanted.",
                table=str(name),
                reason=refusal.message,
            ) from failure
        raise


async def _give_again(
    catalog: OpenCatalog, caller: Caller, name: Identifier, created: GenericTableEntity
) -> LoadedGenericTable:
    """What an earlier attempt created, with access to it as the caller may have it now.

    Without any when it is gone, or the caller may not: it is told of the table, as it was then.
    """
    try:
        loaded = await load_generic_table(catalog, caller, name, is_delegated=True)
    except (NotFound, Forbidden, StorageRefused, BadInput):
        return LoadedGenericTable(name, created)
    is_it = loaded.entity.id == created.id
    return LoadedGenericTable(name, created, loaded.access if is_it else ())


async def _undo(catalog: OpenCatalog, caller: Caller, name: Identifier, entity: GenericTableEntity) -> None:
    mine = ObjRef(entity.id, GENERIC_TABLE.name)

    async def prepare(view: View) -> Prepared[None]:
        if await view.find("names", generic_key(name)) != mine.pack():
            return Prepared(None)
        return await prepare_generic_drop(catalog, caller, view, name, mine)

    await commit_part(catalog.committer, caller, "undo-create-generic-table", prepare)
