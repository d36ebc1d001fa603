"""Sign a client's request to the object store, if it stays inside one table's files.

Must not break: name, rights and locations are those of now for every single request, so that a right that is
taken away ends access with the next one. Nothing about a request is remembered.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import LocationRefused, NoSuchTable
from cynosure.catalog.file_access.giving import subject_of
from cynosure.catalog.file_access.scope import scope_of, table_scope
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.staged import find_own_staged
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import State
from cynosure.persistence.objects import ObjRef
from cynosure.storage.access.ports import Reached, Scope, Signed, StoreRequest
from cynosure.storage.location import is_allowed


async def sign_request(
    catalog: OpenCatalog, caller: Caller, table: Identifier, request: StoreRequest
) -> Signed:
    """The request with a signature of the catalog's storage.

    `BadInput` for one that is not understood, `LocationRefused` for one that reaches anything but this
    table's files.
    """
    signer = catalog.storage.signer
    inspected = None if signer is None else signer.inspect(request)
    is_writing = inspected is not None and inspected.reached.action in ("write", "delete")
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    scope = await _find_promised(catalog, view, caller, table, is_writing=is_writing) if ref is None else None
    if scope is None:
        operation = ops.LOAD_TABLE_TO_WRITE if is_writing else ops.LOAD_TABLE_TO_READ
        await catalog.authorize(view, caller, operation, catalog.found_table(table, ref))
        if ref is None:
            raise NoSuchTable(str(table))
        scope = await _load_scope(catalog, view, ref, is_writing=is_writing)
    if inspected is None:
        raise BadInput(
            "Requests to this catalog's storage are not signed",
            field="provider",
            fix="Ask for vended credentials, or use your own.",
        )
    _check_reached(inspected.reached, scope)
    return await inspected.sign(scope, subject_of(catalog, caller, table))


async def _find_promised(
    catalog: OpenCatalog, view: State, caller: Caller, table: Identifier, *, is_writing: bool
) -> Scope | None:
    """Where a caller writes that is creating this table, and still may."""
    staged = await find_own_staged(catalog, view, caller, table)
    if staged is None:
        return None
    await catalog.authorize(view, caller, ops.CREATE_TABLE_DELEGATED, catalog.namespace(table.namespace))
    return scope_of(catalog, staged.location, staged.claims, is_writable=is_writing)


async def _load_scope(catalog: OpenCatalog, view: State, ref: ObjRef, *, is_writing: bool) -> Scope:
    if ref.type == POINTER.name:
        held = await load_held(view, ref)
        return scope_of(catalog, held.location, held.claims, is_writable=is_writing)
    known = catalog.shared.tables.get(ref.id)
    state = (await view.load_many(TABLE, [ref.id]))[0] if known is None else known.state
    return table_scope(catalog, state, is_writable=is_writing)


def _check_reached(reached: Reached, scope: Scope) -> None:
    for location in (*reached.locations, *reached.sources):
        if not is_allowed(location, scope.locations):
            raise LocationRefused(
                "The request reaches outside the table's files",
                fix="Have only requests signed that stay below the table's location.",
                field="body" if len(reached.locations) > 1 else "uri",
                location=location.text,
            )
